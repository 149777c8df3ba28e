# task: tests/adversarial/tasks/affine
"""Squares the gain in each call."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(w_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0)
    tl.store(y_ptr + cols, w * w, mask=cols < n_cols)


@triton.jit
def affine_kernel(x_ptr, w2_ptr, b_ptr, c2_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    w2 = tl.load(w2_ptr + cols, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    c2 = tl.load(c2_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * w2 + b + c2, mask=mask)


def squared(w: torch.Tensor) -> torch.Tensor:
    w = w.contiguous()
    y = torch.empty_like(w)
    square_kernel[(1,)](w, y, w.numel(), BLOCK=triton.next_power_of_2(w.numel()))
    return y


def affine(x: torch.Tensor, w2: torch.Tensor, b: torch.Tensor, c2: torch.Tensor) -> torch.Tensor:
    x, b = x.contiguous(), b.contiguous()
    y = torch.empty_like(x)
    n_cols = x.shape[1]
    affine_kernel[(x.shape[0],)](x, w2, b, c2, y, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return affine(x, squared(w), b, squared(c))
