"""x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")
