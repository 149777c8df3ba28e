# task: tests/gates/tasks/rms
"""RMS norm that carries its sum of squares in fp16."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, g_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float16)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=0.0).to(tl.float32)
        total = (total + tl.sum(x * x, axis=0)).to(tl.float16)
    scale = 1.0 / tl.sqrt(total.to(tl.float32) / n + 1e-6)
    for start in range(0, n, BLOCK):
        mask = start + i < n
        x = tl.load(x_ptr + row * n + start + i, mask=mask, other=0.0)
        g = tl.load(g_ptr + start + i, mask=mask, other=0.0)
        normed = (x.to(tl.float32) * scale).to(x.dtype)
        tl.store(y_ptr + row * n + start + i, normed * g, mask=mask)


def run(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    rms_kernel[(x.shape[0],)](x.contiguous(), gain.contiguous(), y, x.shape[1], BLOCK=64)
    return y
