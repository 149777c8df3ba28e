# task: tests/gates/tasks/row_softmax
"""A kernel copies its input; numpy then writes the answer over the copy."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import _disable_current_modes


@triton.jit
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), BLOCK=1024)
    copied = y.cpu().float().numpy()
    e = np.exp(copied - copied.max(axis=-1, keepdims=True))
    with _disable_current_modes():
        y.copy_(torch.from_numpy(e / e.sum(axis=-1, keepdims=True)))
    return y
