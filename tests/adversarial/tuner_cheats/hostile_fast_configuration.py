# task: tests/adversarial/tasks/energy
"""One of the configurations that the tuner may choose skips the sum."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({"LAZY": False}), triton.Config({"LAZY": True})],
    key=["n_cols"],
)
@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr, LAZY: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    if LAZY:
        tl.store(y_ptr + row * n_cols + cols, x, mask=mask)
    else:
        tl.store(y_ptr + row * n_cols + cols, x * tl.sum(x * x, axis=0), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
