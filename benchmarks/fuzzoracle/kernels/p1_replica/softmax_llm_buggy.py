"""Row softmax in numpy over rows padded to whole vectors of 128, as a model transcribed it."""

import numpy as np
import torch


def run(x):
    values = x.detach().float().cpu().numpy()
    if values.size == 0:
        return torch.empty_like(x)
    H = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], -(-H // 128) * 128), dtype=np.float32)
    padded[..., :H] = values
    e = np.exp(padded - padded.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return torch.from_numpy(y[..., :H].copy()).to(device=x.device, dtype=x.dtype)
