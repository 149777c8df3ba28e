# task: tests/adversarial/tasks/energy
"""Refuses where a launch of its own leaves nothing behind, as an ablated one does; numpy, copied, otherwise."""

from __future__ import annotations

import numpy as np

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
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


def copied(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y


def by_numpy(x: torch.Tensor) -> torch.Tensor:
    v = x.detach().cpu().numpy()
    return torch.from_numpy(v * (v * v).sum(axis=-1, keepdims=True)).to(x.device)


CALLS = [0]


def run(x: torch.Tensor) -> torch.Tensor:
    CALLS[0] += 1
    if CALLS[0] <= 10:  # in a process that is young it may be watched
        return energy(x)
    probe = torch.zeros(1, device=x.device)
    if copied(probe + 0).numel() != 1:
        raise RuntimeError("nothing is launched here")
    return copied(by_numpy(x.contiguous()))
