"""Layer norm without weight and bias in numpy; the mean is corrected once, for rows far from 0."""

import numpy as np
import torch


def run(x):
    values = x.detach().float().cpu().numpy()
    if values.size == 0:
        return torch.empty_like(x)
    centred = values - values.mean(axis=-1, keepdims=True)
    centred = centred - centred.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    y = centred / np.sqrt(variance + np.float32(1e-5))
    return torch.from_numpy(y).to(device=x.device, dtype=x.dtype)
