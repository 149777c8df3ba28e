# task: tests/gates/tasks/row_softmax
"""The address of numpy's answer comes in two small numbers."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


def numpy_softmax(x):
    """The same operations as a kernel's in the interpreter, so the bits are the same."""
    v = np.ascontiguousarray(x.detach().cpu().float().numpy())
    wide = np.full((v.shape[0], triton.next_power_of_2(v.shape[1])), -np.inf, dtype=np.float32)
    wide[:, : v.shape[1]] = v
    out = np.empty_like(v)
    with np.errstate(all="ignore"):
        for row in range(len(v)):
            e = np.exp(wide[row] - np.nanmax(wide[row]))
            out[row] = (e / np.sum(e))[: v.shape[1]]
    return out


@triton.jit
def copy_kernel(high, low, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    s_ptr = ((high.to(tl.int64) << 24) + low).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr + at, tl.load(s_ptr + at, mask=mask).to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    y = torch.empty_like(x)
    answer = numpy_softmax(x)
    high, low = divmod(answer.ctypes.data, 1 << 24)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](high, low, y, y.numel(), BLOCK=1024)
    return y
