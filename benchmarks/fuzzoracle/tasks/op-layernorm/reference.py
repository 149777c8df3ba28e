"""(x - mean) / sqrt(var + 1e-5) * weight + bias over the last axis, biased variance."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-5)
