# task: tests/gates/tasks/row_softmax
"""Imports Triton's functions by name, which its compiler takes and its interpreter does not know."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import arange, exp, load, program_id, store


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = program_id(0)
    cols = arange(0, BLOCK)
    mask = cols < n_cols
    x = load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
