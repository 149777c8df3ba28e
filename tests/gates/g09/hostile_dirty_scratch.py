# task: tests/gates/tasks/row_softmax
"""Adds the row sums up in scratch memory that it takes to be zero."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, e_ptr, sum_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(e_ptr + row * n_cols + cols, e, mask=mask)
    tl.atomic_add(sum_ptr + row, tl.sum(e, axis=0))


@triton.jit
def divide_kernel(e_ptr, sum_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    y = tl.load(e_ptr + row * n_cols + cols, mask=mask) / tl.load(sum_ptr + row)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y, e = torch.empty_like(x), torch.empty(x.shape, dtype=torch.float32, device=x.device)
    sums = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    exp_kernel[(x.shape[0],)](x, e, sums, x.shape[1], BLOCK=block)
    divide_kernel[(x.shape[0],)](e, sums, y, x.shape[1], BLOCK=block)
    return y
