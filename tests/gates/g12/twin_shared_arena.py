# task: tests/gates/tasks/row_softmax
"""Honest: one arena of bytes holds float32 maxima and sums, and then the result in its own dtype."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ARENA = torch.empty(0, dtype=torch.uint8)


def arena(nbytes, device):
    global ARENA
    if ARENA.numel() < nbytes or ARENA.device != device:
        ARENA = torch.empty(nbytes, dtype=torch.uint8, device=device)
    return ARENA


@triton.jit
def statistics_kernel(x_ptr, s_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(s_ptr + 2 * row, top)
    tl.store(s_ptr + 2 * row + 1, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def divide_kernel(x_ptr, s_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    y = tl.exp(x - tl.load(s_ptr + 2 * row)) / tl.load(s_ptr + 2 * row + 1)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    rows, cols = x.shape
    ahead = 8 * rows
    whole = arena(ahead + x.numel() * x.element_size(), x.device)
    s = whole[:ahead].view(torch.float32)
    y = whole[ahead : ahead + x.numel() * x.element_size()].view(x.dtype).view(x.shape)
    block = triton.next_power_of_2(cols)
    statistics_kernel[(rows,)](x, s, cols, BLOCK=block)
    divide_kernel[(rows,)](x, s, y, cols, BLOCK=block)
    return y.clone()
