# task: tests/gates/tasks/wide_sum
"""Sum of each row by floating-point atomics: the order of the additions is a race."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    i = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr + row, tl.sum(x, axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
    n = x.shape[1]
    sum_kernel[(x.shape[0], triton.cdiv(n, 64))](x.contiguous(), y, n, BLOCK=64)
    return y
