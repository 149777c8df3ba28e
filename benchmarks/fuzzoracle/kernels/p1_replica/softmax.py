"""Row softmax in numpy."""

import numpy as np
import torch


def run(x):
    values = x.detach().float().cpu().numpy()
    if values.size == 0:
        return torch.empty_like(x)
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return torch.from_numpy(y).to(device=x.device, dtype=x.dtype)
