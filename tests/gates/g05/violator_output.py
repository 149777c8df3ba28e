# task: tests/gates/tasks/relu
"""A ReLU that returns fp32 whatever it was given; in fp32 nobody notices."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(x < 0, 0.0, x), mask=i < n)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    relu_kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y, x.numel(), BLOCK=256)
    return y
