"""Twin: works in place on a copy that is always one."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(work_ptr, gain_ptr, count, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    gain = tl.load(gain_ptr + at % n, mask=mask).to(tl.float32)
    tl.store(work_ptr + at, tl.load(work_ptr + at, mask=mask) * gain, mask=mask)


@triton.jit
def round_kernel(work_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(work_ptr + at, mask=mask).to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    work = x.contiguous().to(torch.float32, copy=True)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count, n = work.numel(), x.shape[1]
    grid = (triton.cdiv(count, 512),)
    multiply_kernel[grid](work, gain.contiguous(), count, n, BLOCK=512)
    round_kernel[grid](work, y, count, BLOCK=512)
    return y
