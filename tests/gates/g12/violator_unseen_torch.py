# task: tests/gates/tasks/row_softmax
"""Torch computes where no dispatch mode sees it, and a Triton kernel copies."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import _disable_current_modes


@triton.jit
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        answer = torch.softmax(x, dim=-1)
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](answer, y, y.numel(), BLOCK=1024)
    return y
