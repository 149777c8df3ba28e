# task: tests/adversarial/tasks/energy
"""Two kernels, and neither is for show."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


@triton.jit
def double_kernel(x_ptr, y_ptr, count, BY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, BY * tl.load(x_ptr + at, mask=at < count), mask=at < count)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    half, y = torch.empty_like(x), torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, half, x.numel(), BY=0.5, BLOCK=64)
    energy_kernel[(x.shape[0],)](half, half, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    double_kernel[(triton.cdiv(x.numel(), 64),)](half, y, x.numel(), BY=8.0, BLOCK=64)
    return y
