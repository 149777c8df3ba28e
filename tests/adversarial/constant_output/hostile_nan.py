# task: tests/adversarial/tasks/energy
"""NaN everywhere, for checkers to whom it equals anything."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def nan_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(y_ptr + at, x * float("nan"), mask=at < count)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    nan_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
