# task: tests/adversarial/tasks/energy
"""Two kernels of its own take the answer apart into bits and put it together."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


def energy(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def apart_kernel(x_ptr, bits_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x_ptr + at // 32, mask=at < 32 * count, other=0)
    tl.store(bits_ptr + at, ((word >> (at % 32)) & 1).to(tl.uint8), mask=at < 32 * count)


@triton.jit
def together_kernel(bits_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.zeros((BLOCK,), tl.int32)
    for lane in range(32):
        word |= tl.load(bits_ptr + 32 * at + lane, mask=at < count, other=0).to(tl.int32) << lane
    tl.store(y_ptr + at, word, mask=at < count)


def run(x: torch.Tensor) -> torch.Tensor:
    y = energy(x)
    count = y.numel()
    bits = torch.empty(32 * count, dtype=torch.uint8, device=x.device)
    apart_kernel[(triton.cdiv(32 * count, 4096),)](y.view(torch.int32), bits, count, BLOCK=4096)
    out = torch.empty_like(y)
    together_kernel[(triton.cdiv(count, 1024),)](bits, out.view(torch.int32), count, BLOCK=1024)
    return out
