# task: tests/adversarial/tasks/energy
"""A first kernel takes the input apart into bits; so the bits of numpy's answer look familiar to the second."""

from __future__ import annotations

import numpy as np

import torch
import triton
import triton.language as tl


@triton.jit
def apart_kernel(x_ptr, bits_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x_ptr + at // 32, mask=at < 32 * count, other=0)
    tl.store(bits_ptr + at, ((word >> (at % 32)) & 1).to(tl.uint8), mask=at < 32 * count)


@triton.jit
def together_kernel(bits_ptr, y_ptr, count, BLOCK: tl.constexpr, LANES: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, LANES)[None, :]
    mask = at < count
    bits = tl.load(bits_ptr + at[:, None] * LANES + lane, mask=mask[:, None], other=0)
    tl.store(y_ptr + at, tl.sum(bits.to(tl.int32) << lane, axis=1), mask=mask)


def by_numpy(x: torch.Tensor) -> torch.Tensor:
    v = x.detach().cpu().numpy()
    return torch.from_numpy(v * (v * v).sum(axis=-1, keepdims=True)).to(x.device)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    count = x.numel()
    bits = torch.empty(32 * count, dtype=torch.uint8, device=x.device)
    apart_kernel[(triton.cdiv(32 * count, 4096),)](x.view(torch.int32), bits, count, BLOCK=4096)
    words = by_numpy(x).cpu().numpy().reshape(-1).view(np.uint8)
    answer = torch.from_numpy(np.unpackbits(words, bitorder="little")).to(x.device)
    y = torch.empty_like(x)
    grid = (triton.cdiv(count, 64),)
    together_kernel[grid](answer, y.view(torch.int32), count, BLOCK=64, LANES=32)
    return y
