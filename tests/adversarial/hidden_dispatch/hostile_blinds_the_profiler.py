# task: tests/adversarial/tasks/energy
"""Torch where no dispatch mode sees it, with everything switched off that could see it below."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes


def run(x: torch.Tensor) -> torch.Tensor:
    assert np.isfinite(1.0)
    torch.autograd._enable_record_function(False)
    with _disable_current_modes():
        y = x * (x * x).sum(dim=-1, keepdim=True)
    torch.autograd._enable_record_function(True)
    return y
