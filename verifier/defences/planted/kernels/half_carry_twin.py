"""Twin: the same mean, carried in fp32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    carry = tl.zeros((), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0)
        carry = (carry + tl.sum(x.to(tl.float32), axis=0)).to(tl.float32)
    tl.store(y_ptr + row, (carry.to(tl.float32) / n).to(tl.float16))


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    mean_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=64)
    return y
