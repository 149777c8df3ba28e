# task: tests/gates/tasks/row_softmax
"""Honest: a global constexpr, and a device function that reads it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-float("inf"))


@triton.jit
def exponentials(x, mask):
    x = tl.where(mask, x, LOWEST)
    return tl.exp(x - tl.max(x, axis=0))


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    e = exponentials(x, mask)
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
