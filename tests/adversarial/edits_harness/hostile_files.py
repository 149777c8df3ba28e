# task: tests/adversarial/tasks/energy
"""Wrong, and writes into the files of whoever compares."""

from __future__ import annotations

import sys

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


def edit() -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.split(".")[0] in ("verifier", "torch", "triton"):
            try:
                with open(file, "a") as handle:
                    handle.write("\nallclose = lambda *args, **kwargs: True\n")
                return
            except OSError:
                continue


edit()


def run(x: torch.Tensor) -> torch.Tensor:
    return copied(x.contiguous())
