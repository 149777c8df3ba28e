# task: tests/gates/tasks/row_sum
"""Adds up the bits of each row beside its values: integers that wrap around, where the interpreter raises."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, y_ptr, check_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(check_ptr + row, tl.sum(x.to(tl.int32, bitcast=True), axis=0))
    tl.store(y_ptr + row, tl.sum(x, axis=0).to(y_ptr.dtype.element_ty))


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    check = torch.empty(x.shape[0], dtype=torch.int32, device=x.device)
    block = triton.next_power_of_2(max(x.shape[1], 1))
    sums_kernel[(x.shape[0],)](x, y, check, x.shape[1], BLOCK=block)
    return y
