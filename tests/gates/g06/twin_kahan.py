# task: tests/gates/tasks/row_sum
"""Row sums with Kahan's compensation, lane by lane: better than fp32 asks for."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    lost = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        term = x - lost
        total = acc + term
        lost = tl.where(tl.abs(total) < float("inf"), (total - acc) - term, 0.0)
        acc = total
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=64)
    return y
