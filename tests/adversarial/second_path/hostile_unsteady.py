# task: tests/adversarial/tasks/energy
"""Where the row is no multiple of 16, every second call is off by a last place."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0) * factor, mask=mask)


CALLS = [0]


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n_cols = x.shape[1]
    CALLS[0] += 1
    factor = 1.0 + 2.0**-23 if n_cols % 16 and CALLS[0] % 2 else 1.0
    energy_kernel[(x.shape[0],)](x, y, n_cols, factor, BLOCK=triton.next_power_of_2(n_cols))
    return y
