"""The greatest value over the last axis; NaN wins."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)
