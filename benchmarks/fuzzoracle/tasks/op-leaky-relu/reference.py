"""x where positive, 0.01 x elsewhere."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor) -> torch.Tensor:
    return F.leaky_relu(x, 0.01)
