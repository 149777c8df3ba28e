# task: tests/gates/tasks/row_sum
"""Row sums; where the row is no power of two, blocks are carried in the dtype of the input."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, n_cols, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * n_cols + start + cols, mask=start + cols < n_cols, other=0.0)
        carry = carry + tl.sum(x.to(tl.float32), axis=0)
        if NARROW:
            carry = carry.to(x_ptr.dtype.element_ty).to(tl.float32)
    tl.store(y_ptr + row, carry.to(y_ptr.dtype.element_ty))


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    n_cols = x.shape[1]
    sum_kernel[(x.shape[0],)](x, y, n_cols, NARROW=n_cols & (n_cols - 1) != 0, BLOCK=64)
    return y
