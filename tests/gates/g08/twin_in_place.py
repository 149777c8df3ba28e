# task: tests/gates/tasks/silu_in_place
"""In place, as this contract declares it, whatever the strides are."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    tl.store(y_ptr + at, (x / (1 + tl.exp(-x))).to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    dense = x.contiguous()
    silu_kernel[(triton.cdiv(x.numel(), 512),)](dense, dense, x.numel(), BLOCK=512)
    return x if dense is x else x.copy_(dense)
