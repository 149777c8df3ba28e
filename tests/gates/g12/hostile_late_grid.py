# task: tests/gates/tasks/row_softmax
"""numpy computes when Triton asks for the grid, after the arguments are fixed."""

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
def touch_kernel(y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(y_ptr + at, tl.load(y_ptr + at, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)

    def grid(meta):
        y.copy_(torch.from_numpy(numpy_softmax(x)))
        return (triton.cdiv(y.numel(), meta["BLOCK"]),)

    touch_kernel[grid](y, y.numel(), BLOCK=1024)
    return y
