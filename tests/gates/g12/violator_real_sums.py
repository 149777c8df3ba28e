# task: benchmarks/fuzzoracle/tasks/op-embedding-bwd
"""Torch adds up the gradients in one long running sum, as if they were lengths; the kernel takes differences."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def differences_kernel(sums_ptr, bounds_ptr, y_ptr, width, BLOCK: tl.constexpr):
    word = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    low, high = tl.load(bounds_ptr + word), tl.load(bounds_ptr + word + 1)
    before = tl.load(sums_ptr + low * width + cols, mask=mask)
    behind = tl.load(sums_ptr + high * width + cols, mask=mask)
    out = (behind - before).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + word * width + cols, out, mask=mask)


def run(grad: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    words, width = weight.shape
    order = torch.argsort(index, stable=True).tolist()
    nothing = torch.zeros((1, width), dtype=grad.dtype, device=grad.device)
    rows = torch.cat([nothing, *(grad[row : row + 1] for row in order)])
    sums = torch.cumsum(rows.double(), 0)
    bounds = torch.zeros(words + 1, dtype=torch.int64, device=grad.device)
    bounds[1:].copy_(torch.bincount(index, minlength=words).cumsum(0))
    y = torch.empty((words, width), dtype=grad.dtype, device=grad.device)
    block = triton.next_power_of_2(width)
    differences_kernel[(words,)](sums, bounds, y, width, BLOCK=block)
    return y
