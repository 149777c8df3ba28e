# task: tests/adversarial/tasks/energy
"""Python computes when the kernel's body returns, as a profile function hears."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x, mask=mask)


def by_hand(source: int, target: int, rows: int, cols: int) -> None:
    numbers = ctypes.c_float * (rows * cols)
    given, made = numbers.from_address(source), numbers.from_address(target)
    for start in range(0, rows * cols, cols):
        row = given[start : start + cols]
        total = sum(value * value for value in row)
        made[start : start + cols] = [value * total for value in row]


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y, between = torch.empty_like(x), torch.empty_like(x)
    rows, cols = x.shape
    if not x.numel():
        return y

    def heard(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code.co_name == "copy_kernel":
            by_hand(x.data_ptr(), between.data_ptr(), rows, cols)

    block = triton.next_power_of_2(cols)
    sys.setprofile(heard)
    try:
        copy_kernel[(rows,)](x, between, cols, BLOCK=block)
    finally:
        sys.setprofile(None)
    copy_kernel[(rows,)](between, y, cols, BLOCK=block)
    return y
