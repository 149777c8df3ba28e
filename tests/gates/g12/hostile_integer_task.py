# task: tests/gates/tasks/add_int64
"""Numpy adds integers, a kernel copies."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(s_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(s_ptr + at, mask=mask), mask=mask)


def run(a, b):
    s = torch.from_numpy(a.cpu().numpy() + b.cpu().numpy())
    y = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](s, y, y.numel(), BLOCK=1024)
    return y
