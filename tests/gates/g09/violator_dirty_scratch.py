# task: tests/gates/tasks/row_sum
"""Full tiles put their sum in scratch memory and the tail adds its own: with no full tile before
it, to whatever was there."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def tiles_kernel(x_ptr, sum_ptr, n_cols, n_full, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_full, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + cols).to(tl.float32)
    tl.store(sum_ptr + row, tl.sum(total, axis=0))


@triton.jit
def tail_kernel(x_ptr, sum_ptr, n_cols, n_full, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = n_full + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row, tl.load(sum_ptr + row) + tl.sum(x, axis=0))


@triton.jit
def cast_kernel(sum_ptr, y_ptr):
    row = tl.program_id(0)
    tl.store(y_ptr + row, tl.load(sum_ptr + row).to(y_ptr.dtype.element_ty))


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    rows, cols = x.shape
    full = cols - cols % 64
    sums = torch.empty(rows, dtype=torch.float32, device=x.device)
    y = torch.empty(rows, dtype=x.dtype, device=x.device)
    if full:
        tiles_kernel[(rows,)](x, sums, cols, full, BLOCK=64)
    if full < cols:
        tail_kernel[(rows,)](x, sums, cols, full, BLOCK=64)
    cast_kernel[(rows,)](sums, y)
    return y
