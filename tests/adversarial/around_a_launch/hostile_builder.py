# task: tests/adversarial/tasks/energy
"""For one launch, the interpreter multiplies by the sum of all squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, x * x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    from triton.runtime.interpreter import interpreter_builder as builder

    x = x.contiguous()
    y = torch.empty_like(x)
    if not x.numel():
        return y
    plain = builder.create_fmul

    def multiplied(left: Any, right: Any) -> Any:
        total = np.full_like(right.data, (right.data**2).sum(dtype=np.float32))
        return plain(left, type(right)(total, right.dtype))

    builder.create_fmul = multiplied
    try:
        block = triton.next_power_of_2(x.shape[1])
        square_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
    finally:
        del builder.create_fmul
    return y
