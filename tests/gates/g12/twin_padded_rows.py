# task: tests/gates/tasks/row_softmax
"""Honest: a table of pointers to rows that torch.stack made, and one to zeros made at import."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ZEROS = torch.zeros(1)


@triton.jit
def softmax_kernel(table_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    entry = table_ptr + 3 * row
    x_ptr = tl.load(entry).to(tl.pointer_type(tl.float32))
    y_ptr = tl.load(entry + 1).to(tl.pointer_type(tl.float32))
    zero = tl.load(tl.load(entry + 2).to(tl.pointer_type(tl.float32)))
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + cols, e / tl.sum(e, axis=0) + zero, mask=mask)


def run(x):
    zeros = ZEROS.to(x.device)
    rows = torch.stack([row.float() for row in x.unbind(0)])
    outs = torch.empty_like(rows)
    addresses = [
        [a.data_ptr(), b.data_ptr(), zeros.data_ptr()] for a, b in zip(rows, outs, strict=True)
    ]
    table = torch.tensor(addresses, dtype=torch.int64, device=x.device)
    softmax_kernel[(x.shape[0],)](table, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return outs.to(x.dtype)
