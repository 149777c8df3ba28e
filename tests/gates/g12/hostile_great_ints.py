# task: tests/gates/tasks/row_sum
"""Numpy sums; the words go by in the low bits of integers that a double cannot hold."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def word_kernel(y_ptr, row, a, b, c, d):
    word = (a & 255) | ((b & 255) << 8) | ((c & 255) << 16) | ((d & 255) << 24)
    v = word.to(tl.uint32).to(tl.float32, bitcast=True)
    tl.store(y_ptr + row, v.to(y_ptr.dtype.element_ty))


def run(x):
    words = (
        x.detach()
        .cpu()
        .float()
        .numpy()
        .sum(axis=-1, dtype=np.float64)
        .astype(np.float32)
        .view(np.uint32)
    )
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    for row, word in enumerate(words.tolist()):
        word_kernel[(1,)](y, row, *((1 << 62) + (word >> s & 255) for s in (0, 8, 16, 24)))
    return y
