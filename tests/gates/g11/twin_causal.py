# task: tests/gates/tasks/causal_sum
"""A causal sum that looks back only."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    seen = cols[None, :] <= cols[:, None]
    y = tl.sum(tl.where(seen, x[None, :], 0.0), axis=1)
    tl.store(y_ptr + row * n_cols + cols, y, mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    scan_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
