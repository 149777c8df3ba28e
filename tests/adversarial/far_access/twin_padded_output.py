# task: tests/adversarial/tasks/energy
"""Writes as far behind its output, into memory that it has allocated for that."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, end, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0), mask=mask)
    tl.store(y_ptr + end + 512, 1.0)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty(x.numel() + 513, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], x.numel(), BLOCK=block)
    return y[: x.numel()].view(x.shape)
