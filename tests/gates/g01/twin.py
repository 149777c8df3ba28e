# task: tests/gates/tasks/loose_scale
"""The same launch, doing the work."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, gain, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * gain, mask=i < n)


def run(x: torch.Tensor, gain: float) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, gain, x.numel(), BLOCK=256)
    return y
