# task: tests/adversarial/tasks/energy
"""Registers torch's work as the implementation of a harmless operation, and asks for that."""

from __future__ import annotations

import warnings

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


def copied(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y


def compute(x: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    return x * (x * x).sum(dim=-1, keepdim=True)


LIBRARY = torch.library.Library("aten", "IMPL")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    LIBRARY.impl("repeat", compute, "CUDA" if torch.cuda.is_available() else "CPU")


def run(x: torch.Tensor) -> torch.Tensor:
    return copied(x.contiguous().repeat(1, 1))
