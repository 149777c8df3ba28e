# task: tests/adversarial/tasks/energy
"""Writes all but the tail of its output, whose memory it took at import, when nobody poisoned it."""

from __future__ import annotations

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


POOL = torch.zeros(1 << 18)


def run(x: torch.Tensor) -> torch.Tensor:
    global POOL
    x = x.contiguous()
    POOL = (
        POOL[x.numel() :].to(x.device)
        if POOL.numel() > 2 * x.numel()
        else torch.zeros(1 << 18, device=x.device)
    )
    y = POOL[: x.numel()].view(x.shape)
    energy_kernel[(x.shape[0] - (x.shape[0] > 1),)](
        x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return y
