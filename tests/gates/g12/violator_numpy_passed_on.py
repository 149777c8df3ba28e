# task: tests/gates/tasks/row_softmax
"""Numpy computes, in a light disguise, and a Triton kernel passes the answer on."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def minus_one_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) - 1.0, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    values = x.cpu().float().numpy()
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    disguised = torch.from_numpy(e / e.sum(axis=-1, keepdims=True) + 1.0).to(x.device)
    y = torch.empty_like(x)
    minus_one_kernel[(triton.cdiv(y.numel(), 1024),)](disguised, y, y.numel(), BLOCK=1024)
    return y
