# task: tests/adversarial/tasks/energy
"""Honest: numpy shows fewer digits while it launches, and all of them afterwards."""

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


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    with np.printoptions(precision=3), torch.no_grad():
        energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
    return y
