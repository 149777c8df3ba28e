# task: tests/gates/tasks/causal_mix
"""Causal attention that never reads a future key. Eager leaks (0 * NaN); this is better."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(q_ptr, k_ptr, v_ptr, y_ptr, n, scale, BLOCK: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    keys, d = tl.arange(0, BLOCK), tl.arange(0, D)
    past = keys <= t
    q = tl.load(q_ptr + t * D + d)
    k = tl.load(k_ptr + keys[:, None] * D + d[None, :], mask=past[:, None], other=0.0)
    v = tl.load(v_ptr + keys[:, None] * D + d[None, :], mask=past[:, None], other=0.0)
    scores = tl.sum(k * q[None, :], axis=1) * scale
    scores = tl.where(past, scores, -float("inf"))
    e = tl.exp(scores - tl.max(scores, axis=0))
    y = tl.sum((e / tl.sum(e, axis=0))[:, None] * v, axis=0)
    tl.store(y_ptr + t * D + d, y)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    n, width = q.shape
    y = torch.empty_like(q)
    block = triton.next_power_of_2(n)
    attend_kernel[(n,)](q, k, v, y, n, width**-0.5, BLOCK=block, D=width)
    return y
