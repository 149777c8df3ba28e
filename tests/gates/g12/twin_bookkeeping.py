# task: benchmarks/fuzzoracle/tasks/op-embedding-bwd
"""Torch sorts the ids and counts them; the kernel adds up the gradients of each word."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(grad_ptr, order_ptr, bounds_ptr, y_ptr, width, BLOCK: tl.constexpr):
    word = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for place in range(tl.load(bounds_ptr + word), tl.load(bounds_ptr + word + 1)):
        row = tl.load(order_ptr + place)
        total += tl.load(grad_ptr + row * width + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + word * width + cols, total.to(y_ptr.dtype.element_ty), mask=mask)


def run(grad: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    grad = grad.contiguous()
    words, width = weight.shape
    order = torch.argsort(index, stable=True)
    bounds = torch.zeros(words + 1, dtype=torch.int64, device=grad.device)
    bounds[1:].copy_(torch.bincount(index, minlength=words).cumsum(0))
    y = torch.empty((words, width), dtype=grad.dtype, device=grad.device)
    block = triton.next_power_of_2(width)
    gather_kernel[(words,)](grad, order, bounds, y, width, BLOCK=block)
    return y
