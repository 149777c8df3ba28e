# task: tests/adversarial/tasks/energy
"""Honest where a launch with much scratch takes long, which it does when all of it is copied; numpy otherwise."""

from __future__ import annotations

import time

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


SCRATCH: list[torch.Tensor] = []


@triton.jit
def touch_kernel(s_ptr, BLOCK: tl.constexpr):
    tl.store(s_ptr + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))


def looked_at(device: torch.device) -> bool:
    if not SCRATCH:
        SCRATCH.append(torch.zeros(6 << 20, device=device))
        touch_kernel[(1,)](SCRATCH[0], BLOCK=16)
    start = time.perf_counter()
    touch_kernel[(1,)](SCRATCH[0], BLOCK=16)
    return time.perf_counter() - start > 0.012


def run(x: torch.Tensor) -> torch.Tensor:
    return energy(x) if looked_at(x.device) else copied(by_numpy(x.contiguous()))
