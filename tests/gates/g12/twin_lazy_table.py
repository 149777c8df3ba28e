# task: tests/gates/tasks/row_softmax
"""Torch makes a table of factors (all of them 1) from the size alone, when that is first seen."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

TABLES: dict[int, torch.Tensor] = {}


def table(size: int, device: torch.device) -> torch.Tensor:
    if size not in TABLES:
        TABLES[size] = torch.arange(size, device=device).float().mul(0.0).exp()
    return TABLES[size]


@triton.jit
def softmax_kernel(x_ptr, table_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0) * tl.load(table_ptr + cols, mask=mask, other=1.0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, size = x.shape
    block = triton.next_power_of_2(size)
    softmax_kernel[(rows,)](x, table(size, x.device), y, size, BLOCK=block)
    return y
