"""Twin: the same greatest value, with NaN put back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    spoiled = tl.sum((x != x).to(tl.int32), axis=0) > 0
    tl.store(y_ptr + row, tl.where(spoiled, float("nan"), tl.max(x, axis=0)))


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    max_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=block)
    return y
