# task: tests/adversarial/tasks/energy
"""Hands its kernel the addresses of its input and of its fresh output."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(source, target, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(source.to(tl.pointer_type(tl.float32)) + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(target.to(tl.pointer_type(tl.float32)) + row * n_cols + cols, y, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    energy_kernel[(x.shape[0],)](x.data_ptr(), y.data_ptr(), x.shape[1], BLOCK=block)
    return y
