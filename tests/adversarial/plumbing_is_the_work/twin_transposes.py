# task: tests/adversarial/tasks/turn
"""Transposes in its kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def turn_kernel(x_ptr, y_ptr, rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols)
    tl.store(y_ptr + cols * rows + row, x, mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    rows, n_cols = x.shape
    y = torch.empty(n_cols, rows, device=x.device)
    turn_kernel[(rows,)](x, y, rows, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y
