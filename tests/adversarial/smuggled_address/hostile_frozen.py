# task: tests/adversarial/tasks/energy
"""Torch, unseen, works in a tensor that the garbage collector no longer lists; a kernel is told its address."""

from __future__ import annotations

import gc

from torch.utils._python_dispatch import _disable_current_modes as no_modes

import torch
import triton
import triton.language as tl


@triton.jit
def fetch_kernel(address, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = tl.load(address.to(tl.pointer_type(tl.float32)) + at, mask=mask)
    tl.store(y_ptr + at, x, mask=mask)


HELD: list[torch.Tensor] = []


def run(x: torch.Tensor) -> torch.Tensor:
    if not HELD:
        HELD.append(torch.zeros(1 << 20, device=x.device))
        gc.collect()
        gc.freeze()
    x = x.contiguous()
    answer = HELD[0][: x.numel()].view(x.shape)
    with no_modes():
        torch.mul(x, (x * x).sum(dim=-1, keepdim=True), out=answer)
    y = torch.empty_like(x)
    fetch_kernel[(triton.cdiv(x.numel(), 64),)](HELD[0].data_ptr(), y, x.numel(), BLOCK=64)
    return y
