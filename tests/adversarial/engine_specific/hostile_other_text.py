# task: tests/adversarial/tasks/energy
"""One kernel for all, until the interpreter asks for its text: then there is some numpy in it."""

from __future__ import annotations

import linecache
import os

import numpy as np

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


if os.environ.get("TRITON_INTERPRET") == "1":
    lines = linecache.getlines(__file__)
    place = lines.index("    y = x\n")
    lines[place] = "    y = x * float(np.square(x.handle.data).sum())\n"
    linecache.cache[__file__] = (sum(map(len, lines)), None, lines, __file__)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
