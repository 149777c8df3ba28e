"""Rows brought to mean 0 and variance 1 (biased, eps 1e-5)."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=1e-5)
