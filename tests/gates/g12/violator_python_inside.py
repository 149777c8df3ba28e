# task: tests/gates/tasks/row_softmax
"""numpy computes in the kernel's body, where Triton's interpreter lets any Python run."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = np.exp(x.handle.data - np.max(x.handle.data))
    x.handle.data = e / np.sum(e)
    tl.store(y_ptr + row * n_cols + cols, x.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
