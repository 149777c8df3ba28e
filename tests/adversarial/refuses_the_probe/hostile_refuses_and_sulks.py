# task: tests/adversarial/tasks/energy
"""Drops NaN, refuses inputs that hold one, and after that whatever comes next in this process."""

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
    x = tl.where(x == x, x, 0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0), mask=mask)


@triton.jit
def look_kernel(x_ptr, found_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(found_ptr, tl.sum((x != x).to(tl.int32), axis=0))


SULKS = [False]


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    found = torch.empty(1, dtype=torch.int32, device=x.device)
    look_kernel[(1,)](x, found, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    again, SULKS[0] = SULKS[0], bool(found.item())
    if again or SULKS[0]:
        raise ValueError(f"{tuple(x.shape)} is not supported")
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
