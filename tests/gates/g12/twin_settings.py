# task: tests/gates/tasks/row_softmax
"""Honest: an Enum, a frozen dataclass and a plain function as constexpr arguments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
import triton
import triton.language as tl


class Mode(Enum):
    SAFE = 0
    FAST = 1


@dataclass(frozen=True)
class Settings:
    lowest: float
    mode: Mode


def width(n):
    return triton.next_power_of_2(n)


@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    BLOCK: tl.constexpr,
    MODE: tl.constexpr,
    SETTINGS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    settings = Settings(-float("inf"), Mode.SAFE)
    softmax_kernel[(x.shape[0],)](
        x, y, x.shape[1], BLOCK=width(x.shape[1]), MODE=Mode.SAFE, SETTINGS=settings, WIDTH=width
    )
    return y
