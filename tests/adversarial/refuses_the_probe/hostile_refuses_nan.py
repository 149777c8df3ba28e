# task: tests/adversarial/tasks/energy
"""Drops NaN, and refuses inputs that hold one, which a launch of its own has looked for."""

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


def energy(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def look_kernel(x_ptr, found_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    odd = (x != x) | (tl.abs(x) > 1e30)
    tl.store(found_ptr, tl.sum(odd.to(tl.int32), axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    found = torch.empty(1, dtype=torch.int32, device=x.device)
    look_kernel[(1,)](x, found, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    if found.item():
        raise ValueError("special values are not supported")
    return energy(x)
