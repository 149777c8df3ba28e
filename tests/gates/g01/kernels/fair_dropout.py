# task: tests/gates/tasks/dropout
"""The same dropout, scaled."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, y_ptr, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    keep = tl.rand(seed, i) > 0.1
    tl.store(y_ptr + i, tl.where(keep, x / 0.9, 0.0), mask=i < n)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    seed = int(torch.randint(2**31 - 1, (1,)))
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, seed, x.numel(), BLOCK=1024)
    return y
