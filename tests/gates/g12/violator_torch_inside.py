# task: tests/gates/tasks/row_softmax
"""Torch computes inside the kernel's body, which the interpreter runs as Python."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BOX: list[torch.Tensor] = []


@triton.jit
def softmax_kernel(y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    BOX[1].copy_(torch.softmax(BOX[0], dim=-1))
    tl.store(y_ptr + at, tl.load(y_ptr + at, mask=mask), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    BOX[:] = [x, y]
    softmax_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
    return y
