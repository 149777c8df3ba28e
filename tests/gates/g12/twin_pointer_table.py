# task: tests/gates/tasks/row_softmax
"""Honest: the style of Triton's tutorial 08 (grouped GEMM): a table of addresses, one of them a fresh output's."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(table, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr = tl.load(table).to(tl.pointer_type(tl.float32))
    y_ptr = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def run(x):
    wide = x.float().contiguous()
    y = torch.empty(wide.shape, dtype=torch.float32, device=x.device)
    table = torch.tensor([wide.data_ptr(), y.data_ptr()], device=x.device)
    softmax_kernel[(x.shape[0],)](
        table, wide.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return y.to(x.dtype)
