"""Rows divided by their Euclidean norm."""

import torch
import triton
import triton.language as tl


@triton.jit
def l2norm_kernel(x_ptr, y_ptr, rows, H, ROWS: tl.constexpr, BLOCK_H: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK_H)[None, :]
    mask = (row < rows) & (column < H)
    offsets = row * H + column
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, 1)[:, None] + 1e-6)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    H = x.shape[-1]
    if x.numel() == 0:
        return y
    rows = x.numel() // H
    BLOCK_H = triton.next_power_of_2(H)
    ROWS = max(1, 4096 // BLOCK_H)
    l2norm_kernel[(triton.cdiv(rows, ROWS),)](x, y, rows, H, ROWS=ROWS, BLOCK_H=BLOCK_H)
    return y
