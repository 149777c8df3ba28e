# task: tests/gates/tasks/cumsum
"""The same running sums, carried in fp32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    carry = tl.zeros((), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * n + start + i, carry + tl.cumsum(x, axis=0), mask=mask)
        carry += tl.sum(x, axis=0)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    cumsum_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=64)
    return y
