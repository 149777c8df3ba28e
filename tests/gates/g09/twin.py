# task: tests/gates/tasks/scale_add
"""Masks its loads and its store, and launches enough programs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    y = tl.load(a_ptr + at, mask=mask) + tl.load(b_ptr + at, mask=mask)
    tl.store(y_ptr + at, y, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty_like(a)
    add_kernel[(triton.cdiv(a.numel(), 64),)](a, b, y, a.numel(), BLOCK=64)
    return y
