# task: tests/gates/tasks/silu_rows
"""Works in place on a float32 copy; in float32 there is no copy, but the input itself."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    tl.store(y_ptr + at, (x / (1 + tl.exp(-x))).to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    work = x.to(torch.float32)
    silu_kernel[(triton.cdiv(work.numel(), 512),)](work, work, work.numel(), BLOCK=512)
    return work.to(x.dtype)
