# task: tests/adversarial/tasks/energy
"""Torch where no dispatch mode sees it; numpy is imported, and so no launch is asked for."""

from __future__ import annotations


import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes


def run(x: torch.Tensor) -> torch.Tensor:
    assert np.isfinite(1.0)
    with _disable_current_modes():
        return x * (x * x).sum(dim=-1, keepdim=True)
