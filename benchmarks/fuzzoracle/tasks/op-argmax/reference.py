"""The first index of the greatest value over the last axis; NaN counts as greatest."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(-1)
