# task: tests/gates/tasks/half_matmul
"""A matrix product that keeps its accumulator in fp16 between steps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, TILE: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, BLOCK_K)
    acc = tl.zeros((TILE, TILE), tl.float16)
    for step in range(tl.cdiv(k, BLOCK_K)):
        at = step * BLOCK_K + depth
        a_mask = (rows[:, None] < m) & (at[None, :] < k)
        b_mask = (at[:, None] < k) & (cols[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * k + at[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + at[:, None] * n + cols[None, :], mask=b_mask, other=0.0)
        acc = (acc + tl.dot(a, b, input_precision="ieee")).to(tl.float16)
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul_kernel[grid](a.contiguous(), b.contiguous(), c, m, n, k, TILE=32, BLOCK_K=32)
    return c
