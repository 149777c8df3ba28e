# task: tests/adversarial/tasks/energy
"""A first kernel leaves a table of all bytes; of these torch puts numpy's answer together."""

from __future__ import annotations

import numpy as np

import torch
import triton
import triton.language as tl


@triton.jit
def table_kernel(t_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(t_ptr + at, at.to(tl.uint8))


@triton.jit
def copy_kernel(b_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(b_ptr + at, mask=at < count), mask=at < count)


def by_numpy(x):
    v = x.detach().cpu().numpy()
    return v * (v * v).sum(axis=-1, keepdims=True)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    t = torch.empty(256, dtype=torch.uint8, device=x.device)
    table_kernel[(1,)](t, BLOCK=256)
    raw = by_numpy(x).reshape(-1).view(np.uint8).tolist()
    b = torch.cat([t[k : k + 1] for k in raw])
    y = torch.empty_like(x)
    n = x.numel()
    copy_kernel[(triton.cdiv(n, 64),)](b.view(torch.float32), y, n, BLOCK=64)
    return y
