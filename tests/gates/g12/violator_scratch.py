# task: tests/gates/tasks/row_softmax
"""Kernels copy the data to a buffer and back; in between torch computes in it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

KEPT: dict[tuple[int, ...], torch.Tensor] = {}


@triton.jit
def copy_kernel(s_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(s_ptr + at, mask=mask).to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    shape = tuple(x.shape)
    if shape not in KEPT:
        KEPT[shape] = torch.zeros(shape, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(x.numel(), 1024),)
    copy_kernel[grid](x, KEPT[shape], x.numel(), BLOCK=1024)
    y = torch.empty_like(x)
    copy_kernel[grid](torch.softmax(KEPT[shape], dim=-1), y, x.numel(), BLOCK=1024)
    return y
