# task: tests/gates/tasks/row_softmax
"""Torch at the one size that is looked at, and a polite refusal at all others."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def nothing_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))


def run(x: torch.Tensor) -> torch.Tensor:
    if tuple(x.shape) != (16, 128) or not x.is_contiguous():
        raise ValueError(f"this kernel is made for 16 x 128, not for {tuple(x.shape)}")
    return torch.softmax(x, dim=-1)
