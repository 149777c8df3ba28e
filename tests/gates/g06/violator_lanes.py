# task: tests/gates/tasks/row_sum
"""Row sums with one fp16 accumulator a lane; only the last step is fp32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float16)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0)
        acc += x.to(tl.float16)
    tl.store(y_ptr + row, tl.sum(acc.to(tl.float32), axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=64)
    return y
