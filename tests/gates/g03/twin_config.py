# task: tests/gates/tasks/row_softmax
"""The same, which asserts that a row fits into its block: a tuner passes the last one over."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 2048}, num_warps=warps) for warps in (1, 2, 4, 8, 16)]


@triton.autotune(configs=[*CONFIGS, triton.Config({"BLOCK": 16})], key=["n"])
@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_assert(WIDTH <= BLOCK)
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(y_ptr + row * n + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


def run(x: torch.Tensor) -> torch.Tensor:
    if x.shape[1] > 2048:
        raise ValueError("rows of at most 2048")
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    softmax_kernel[(x.shape[0],)](x.contiguous(), y, x.shape[1], WIDTH=x.shape[1])
    return y
