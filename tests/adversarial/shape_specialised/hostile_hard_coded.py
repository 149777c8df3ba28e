# task: tests/adversarial/tasks/energy
"""Takes every row for one of 16 elements."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy16_kernel(x_ptr, y_ptr, n_cols):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, 16)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.zeros_like(x)
    energy16_kernel[(x.shape[0],)](x, y, x.shape[1])
    return y
