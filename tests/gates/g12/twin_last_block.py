# task: tests/gates/tasks/row_sum
"""Honest: row sums in chunks; the last program of a row adds the partials up; counters kept zero in a global."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_STATE = {}


def state(rows, parts, device):
    key = (rows, parts, device)
    if key not in _STATE:
        _STATE[key] = (
            torch.empty(rows * parts, dtype=torch.float32, device=device),
            torch.zeros(rows, dtype=torch.int32, device=device),
        )
    return _STATE[key]


@triton.jit
def kernel(x, w, lock, y, sxm, sxn, N, PARTS: tl.constexpr, B: tl.constexpr, PP: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    acc = tl.zeros((B,), tl.float32)
    for k in range(part * B, N, PARTS * B):
        c = k + tl.arange(0, B)
        acc += tl.load(x + row * sxm + c * sxn, mask=c < N, other=0.0).to(tl.float32)
    tl.store(w + row * PARTS + part, tl.sum(acc, 0))
    if tl.atomic_add(lock + row, 1) == PARTS - 1:
        p = tl.arange(0, PP)
        v = tl.load(w + row * PARTS + p, mask=p < PARTS, other=0.0)
        tl.store(y + row, tl.sum(v, 0).to(y.dtype.element_ty))
        tl.store(lock + row, 0)


@torch.no_grad()
def run(x):
    M, N = x.shape
    y = torch.empty(M, dtype=x.dtype, device=x.device)
    w, lock = state(M, 4, x.device)
    kernel[(M, 4)](x, w, lock, y, x.stride(0), x.stride(1), N, PARTS=4, B=128, PP=4)
    return y
