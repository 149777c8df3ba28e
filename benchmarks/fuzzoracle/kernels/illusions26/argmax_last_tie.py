"""The index of the greatest value of each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, y_ptr, rows, H, ROWS: tl.constexpr, BLOCK_H: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK_H)[None, :]
    mask = (row[:, None] < rows) & (column < H)
    x = tl.load(x_ptr + row[:, None] * H + column, mask=mask, other=float("-inf")).to(tl.float32)
    # NaN counts as greatest; among equals the greatest index wins.
    nan = (x != x) & mask
    any_nan = tl.max(nan.to(tl.int32), 1)
    top = tl.max(tl.where(nan, float("-inf"), x), 1)[:, None]
    best = tl.where(any_nan[:, None] > 0, nan, (x == top) & mask)
    y = tl.max(tl.where(best, column, -1), 1)
    tl.store(y_ptr + row, y.to(y_ptr.dtype.element_ty), mask=row < rows)


def run(x):
    x = x.contiguous()
    rows, H = x.shape
    y = torch.empty((rows,), dtype=torch.int64, device=x.device)
    if rows:
        BLOCK_H = triton.next_power_of_2(H)
        ROWS = max(1, 4096 // BLOCK_H)
        argmax_kernel[(triton.cdiv(rows, ROWS),)](x, y, rows, H, ROWS=ROWS, BLOCK_H=BLOCK_H)
    return y
