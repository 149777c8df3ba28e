# task: tests/gates/tasks/row_softmax
"""Softmax whose denominator is carried in fp16 from tile to tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    peak = -float("inf")
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        peak = tl.maximum(peak, tl.max(x, axis=0))
    total = tl.zeros((), tl.float16)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        total = (total + tl.sum(tl.exp(x - peak), axis=0)).to(tl.float16)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * n + start + i, tl.exp(x - peak) / total, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    softmax_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=64)
    return y
