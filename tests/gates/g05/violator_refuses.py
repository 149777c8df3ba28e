# task: tests/gates/tasks/relu
"""A ReLU for fp32 only, where the contract declares fp16 and bf16 as well."""

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
    if x.dtype is not torch.float32:
        raise TypeError("float32 only")
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    relu_kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y, x.numel(), BLOCK=256)
    return y
