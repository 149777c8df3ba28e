# task: tests/gates/tasks/cumsum
"""Torch makes a table of what precedes what, from the size alone, when that is first seen; the kernel adds up."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

STEPS: list[torch.Tensor] = []
TABLES: dict[int, torch.Tensor] = {}


def table(size: int, device: torch.device) -> torch.Tensor:
    if not STEPS:
        STEPS.append(torch.arange(4096, device=device).float().sqrt())
    if size not in TABLES:
        steps = STEPS[0][:size]
        TABLES[size] = (steps[:, None] <= steps[None, :]).to(torch.int8)
    return TABLES[size]


@triton.jit
def sums_kernel(x_ptr, table_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    for col in range(n_cols):
        counts = tl.load(table_ptr + cols * n_cols + col, mask=mask, other=0) != 0
        total = tl.sum(tl.where(counts, x, 0.0), axis=0)
        tl.store(y_ptr + row * n_cols + col, total.to(y_ptr.dtype.element_ty))


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, size = x.shape
    block = triton.next_power_of_2(size)
    sums_kernel[(rows,)](x, table(size, x.device), y, size, BLOCK=block)
    return y
