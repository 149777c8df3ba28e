"""Twin: as many programs as there are blocks, the last of them masked."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def gain_kernel(x_ptr, gain_ptr, y_ptr, count, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    y = tl.load(x_ptr + at, mask=mask) * tl.load(gain_ptr + at % n, mask=mask)
    tl.store(y_ptr + at, y, mask=mask)


def run(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count, n = x.numel(), x.shape[1]
    gain_kernel[(triton.cdiv(count, 128),)](
        x.contiguous(), gain.contiguous(), y, count, n, BLOCK=128
    )
    return y
