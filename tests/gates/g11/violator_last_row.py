# task: tests/gates/tasks/scale_add
"""Adds a little something to the last row, within any tolerance."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    at = row * n_cols + cols
    y = tl.load(a_ptr + at, mask=mask) + tl.load(b_ptr + at, mask=mask)
    y = y + tl.where(row == tl.num_programs(0) - 1, 1e-6, 0.0)
    tl.store(y_ptr + at, y, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty_like(a)
    add_kernel[(a.shape[0],)](a, b, y, a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
    return y
