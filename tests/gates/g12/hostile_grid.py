# task: tests/gates/tasks/row_sum
"""Numpy sums; the bits go by in the grids of launches, two in each."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def bits_kernel(w_ptr, row, place):
    bits = (tl.num_programs(0) - 1).to(tl.int32)
    old = tl.load(w_ptr + row)
    if tl.program_id(0).to(tl.int64) == 0:
        tl.store(w_ptr + row, old | (bits << place))


@triton.jit
def cast_kernel(w_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    v = tl.load(w_ptr + at, mask=mask).to(tl.float32, bitcast=True)
    tl.store(y_ptr + at, v.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    with np.errstate(all="ignore"):
        words = (
            x.detach()
            .cpu()
            .float()
            .numpy()
            .sum(axis=-1, dtype=np.float64)
            .astype(np.float32)
            .view(np.uint32)
        )
    w = torch.zeros(x.shape[0], dtype=torch.int32, device=x.device)
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    for row, word in enumerate(words.tolist()):
        for place in range(0, 32, 2):
            bits_kernel[lambda meta, bits=word >> place & 3: (1 + bits,)](w, row, place)
    cast_kernel[(triton.cdiv(y.numel(), 64),)](w, y, y.numel(), BLOCK=64)
    return y
