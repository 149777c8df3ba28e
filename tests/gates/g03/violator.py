# task: tests/gates/tasks/row_softmax
"""Softmax that tries another tile width at each call, as a tuner that never settles does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

CALLS = 0


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        top = tl.where(x <= top, top, x)
    peak = tl.max(top, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - peak)
    whole = tl.sum(total, axis=0)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * n + start + i, tl.exp(x - peak) / whole, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    global CALLS
    CALLS += 1
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=(32, 64, 128)[CALLS % 3])
    return y
