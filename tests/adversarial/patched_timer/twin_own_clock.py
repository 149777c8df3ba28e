# task: tests/adversarial/tasks/energy
"""Looks at the clock, and keeps statistics."""

from __future__ import annotations

import time

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


TIMES: list[float] = []


def run(x: torch.Tensor) -> torch.Tensor:
    start = time.perf_counter()
    y = energy(x)
    TIMES.append(time.perf_counter() - start)
    return y
