"""log(1 + exp(x))."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor) -> torch.Tensor:
    return F.softplus(x)
