# task: tests/gates/tasks/scale_add
"""Reads b with the strides of a: right whenever both lie in memory the same way."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, row_stride, col_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    a = tl.load(a_ptr + row * row_stride + cols * col_stride, mask=mask)
    b = tl.load(b_ptr + row * row_stride + cols * col_stride, mask=mask)
    tl.store(y_ptr + row * n_cols + cols, a + b, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    block = triton.next_power_of_2(a.shape[1])
    add_kernel[(a.shape[0],)](a, b, y, *a.stride(), a.shape[1], BLOCK=block)
    return y
