# task: tests/gates/tasks/scale_add
"""Makes its inputs contiguous first, and adds in one flat kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    a = tl.load(a_ptr + at, mask=mask)
    b = tl.load(b_ptr + at, mask=mask)
    tl.store(y_ptr + at, a + b, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    add_kernel[(triton.cdiv(a.numel(), 256),)](a, b, y, a.numel(), BLOCK=256)
    return y
