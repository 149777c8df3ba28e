# task: tests/gates/tasks/rms_norm_grad
"""Keeps each row's scale for the way back; the weight's gradient is summed in two steps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PART = tl.constexpr(8)


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, scale_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + 1e-5)
    tl.store(scale_ptr + row, scale)
    tl.store(y_ptr + row * n_cols + cols, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def backward_kernel(
    x_ptr, w_ptr, scale_ptr, up_ptr, dx_ptr, part_ptr, n_rows, n_cols, BLOCK: tl.constexpr
):
    part = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(PART):
        row = part * PART + step
        there = mask & (row < n_rows)
        x = tl.load(x_ptr + row * n_cols + cols, mask=there, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + row * n_cols + cols, mask=there, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + row, mask=row < n_rows, other=0.0)
        normed = x * scale
        share = tl.sum(up * w * normed, axis=0) / n_cols
        dx = scale * (up * w - normed * share)
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=there)
        dw += up * normed
    tl.store(part_ptr + part * n_cols + cols, dw, mask=mask)


@triton.jit
def sum_kernel(part_ptr, dw_ptr, n_parts, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(n_parts):
        dw += tl.load(part_ptr + part * n_cols + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=mask)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x, w = x.contiguous(), w.contiguous()
        rows, cols = x.shape
        y = torch.empty_like(x)
        scale = torch.empty(rows, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(cols)
        forward_kernel[(rows,)](x, w, y, scale, cols, BLOCK=block)
        ctx.save_for_backward(x, w, scale)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, up):
        x, w, scale = ctx.saved_tensors
        up = up.contiguous()
        rows, cols = x.shape
        parts, block = triton.cdiv(rows, PART.value), triton.next_power_of_2(cols)
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        part = torch.empty(parts, cols, dtype=torch.float32, device=x.device)
        backward_kernel[(parts,)](x, w, scale, up, dx, part, rows, cols, BLOCK=block)
        sum_kernel[(1,)](part, dw, parts, cols, BLOCK=block)
        return dx, dw


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return RmsNorm.apply(x, w)
