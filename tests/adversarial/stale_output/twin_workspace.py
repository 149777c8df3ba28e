# task: tests/adversarial/tasks/energy
"""Keeps a workspace per size, and fills it anew in every call."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def totals_kernel(x_ptr, total_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(total_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(x_ptr, total_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.load(total_ptr + row), mask=mask)


TOTALS: dict[int, torch.Tensor] = {}


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    rows, n_cols = x.shape
    if rows not in TOTALS:
        TOTALS[rows] = torch.empty(rows, device=x.device)
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    totals_kernel[(rows,)](x, TOTALS[rows], n_cols, BLOCK=block)
    scale_kernel[(rows,)](x, TOTALS[rows], y, n_cols, BLOCK=block)
    return y
