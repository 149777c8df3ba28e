# task: tests/gates/tasks/loose_scale
"""Answers zeros: within any tolerance that is wider than the answer itself."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def zero_kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.zeros((BLOCK,), tl.float32), mask=i < n)


def run(x: torch.Tensor, gain: float) -> torch.Tensor:
    y = torch.empty_like(x)
    zero_kernel[(triton.cdiv(x.numel(), 256),)](y, x.numel(), BLOCK=256)
    return y
