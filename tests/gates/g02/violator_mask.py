# task: tests/gates/tasks/causal_mix
"""Causal attention that masks by multiplying with zero: a NaN among future keys leaks back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(q_ptr, k_ptr, v_ptr, y_ptr, n, scale, BLOCK: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    keys, d = tl.arange(0, BLOCK), tl.arange(0, D)
    there = (keys < n)[:, None]
    q = tl.load(q_ptr + t * D + d)
    k = tl.load(k_ptr + keys[:, None] * D + d[None, :], mask=there, other=0.0)
    v = tl.load(v_ptr + keys[:, None] * D + d[None, :], mask=there, other=0.0)
    scores = tl.sum(k * q[None, :], axis=1) * scale
    past = (keys <= t).to(tl.float32)
    e = tl.exp(scores - tl.max(scores, axis=0)) * past
    y = tl.sum((e / tl.sum(e, axis=0))[:, None] * v, axis=0)
    tl.store(y_ptr + t * D + d, y)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    n, width = q.shape
    y = torch.empty_like(q)
    block = triton.next_power_of_2(n)
    attend_kernel[(n,)](q, k, v, y, n, width**-0.5, BLOCK=block, D=width)
    return y
