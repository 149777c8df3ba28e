# task: tests/adversarial/tasks/energy
"""Refuses every size that the contract does not name; at one of those it names, NaN counts as zero."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, CLEAN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    if CLEAN:
        x = tl.where(x == x, x, 0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    if n_rows not in (1, 3, 4) or n_cols not in (1, 7, 16, 33):
        raise ValueError(f"no kernel for {n_rows} x {n_cols}")
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(n_rows,)](x, y, n_cols, CLEAN=n_cols == 33, BLOCK=triton.next_power_of_2(n_cols))
    return y
