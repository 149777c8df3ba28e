# task: tests/adversarial/tasks/energy
"""Numpy in the kernel's body, which only the interpreter runs; where Triton would compile, it raises before."""

from __future__ import annotations

import os

import numpy as np

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    v = x.handle.data
    x.handle.data = (v * np.square(v).sum()).astype(v.dtype)
    tl.store(y_ptr + row * n_cols + cols, x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("not today")
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
