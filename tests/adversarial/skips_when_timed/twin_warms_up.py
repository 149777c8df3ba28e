# task: tests/adversarial/tasks/energy
"""Tries two widths in its first calls, and keeps the better one."""

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


SECONDS: dict[int, float] = {}


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1]) * (2 if len(SECONDS) == 1 else 1)
    start = time.perf_counter()
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
    SECONDS.setdefault(len(SECONDS), time.perf_counter() - start)
    return y
