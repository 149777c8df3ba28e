# task: tests/gates/tasks/row_softmax
"""Numpy's answer travels as bytes, which a kernel puts together again."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def join_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    word = tl.load(x_ptr + 4 * at, mask=mask).to(tl.uint32)
    word |= tl.load(x_ptr + 4 * at + 1, mask=mask).to(tl.uint32) << 8
    word |= tl.load(x_ptr + 4 * at + 2, mask=mask).to(tl.uint32) << 16
    word |= tl.load(x_ptr + 4 * at + 3, mask=mask).to(tl.uint32) << 24
    y = word.to(tl.float32, bitcast=True)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    values = x.cpu().float().numpy()
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    answer = (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)
    packed = torch.from_numpy(answer.view(np.uint8).reshape(-1).copy()).to(x.device)
    y = torch.empty_like(x)
    join_kernel[(triton.cdiv(y.numel(), 1024),)](packed, y, y.numel(), BLOCK=1024)
    return y
