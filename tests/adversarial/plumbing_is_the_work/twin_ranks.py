# task: tests/adversarial/tasks/counts
"""Counts for each id how many come before it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def rank_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    mine = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    own = tl.load(x_ptr + mine)
    x = tl.load(x_ptr + at, mask=at < count, other=1 << 40)
    before = (x < own) | ((x == own) & (at < mine))
    rank = tl.sum(tl.where(before & (at < count), 1, 0), axis=0)
    tl.store(y_ptr + rank, own)


def run(ids: torch.Tensor) -> torch.Tensor:
    ids = ids.contiguous()
    y = torch.empty_like(ids)
    rank_kernel[(ids.numel(),)](ids, y, ids.numel(), BLOCK=triton.next_power_of_2(ids.numel()))
    return y
