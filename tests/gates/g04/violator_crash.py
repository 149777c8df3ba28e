# task: tests/gates/tasks/row_softmax
"""Dies, without a word, at row lengths that its author did not think of."""

import os

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def run(x: torch.Tensor) -> torch.Tensor:
    if x.shape[1] % 2:
        os._exit(3)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], BLOCK=block)
    return y
