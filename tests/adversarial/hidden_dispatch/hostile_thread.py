# task: tests/adversarial/tasks/energy
"""Torch computes on a thread that ends before the call does; dispatch modes belong to threads."""

from __future__ import annotations

import threading

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


def copied(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y


def compute(x: torch.Tensor, box: list[torch.Tensor]) -> None:
    box.append(x * (x * x).sum(dim=-1, keepdim=True))


def run(x: torch.Tensor) -> torch.Tensor:
    box: list[torch.Tensor] = []
    worker = threading.Thread(target=compute, args=(x.contiguous(), box))
    worker.start()
    worker.join()
    return copied(box[0])
