# task: tests/gates/tasks/add_int64
"""Adds 64-bit integers in 32 bits: right for small values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n).to(tl.int32)
    b = tl.load(b_ptr + i, mask=i < n).to(tl.int32)
    tl.store(y_ptr + i, (a + b).to(tl.int64), mask=i < n)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(a, memory_format=torch.contiguous_format)
    grid = (triton.cdiv(a.numel(), 256),)
    add_kernel[grid](a.contiguous(), b.contiguous(), y, a.numel(), BLOCK=256)
    return y
