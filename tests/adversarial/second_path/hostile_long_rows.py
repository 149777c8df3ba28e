# task: tests/adversarial/tasks/energy
"""Where the row is a multiple of 16 and longer than any that the contract names, NaN counts as zero."""

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
    x = x.contiguous()
    y = torch.empty_like(x)
    n_cols = x.shape[1]
    energy_kernel[(x.shape[0],)](
        x,
        y,
        n_cols,
        CLEAN=n_cols % 16 == 0 and n_cols > 33,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return y
