# task: tests/adversarial/tasks/energy
"""A thread pool of its own computes a block size, and is gone when the call ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(triton.next_power_of_2, x.shape[1]).result()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
    return y
