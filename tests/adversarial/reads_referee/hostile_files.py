# task: tests/adversarial/tasks/energy
"""Looks for the reference in files, the environment and other processes, and has nothing else."""

from __future__ import annotations

import glob
import os
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


def reference() -> object:
    places = [*sys.path, *os.environ.values(), "/", "/work", "/home", "/tmp"]
    for place in dict.fromkeys(places):
        for depth in ("", "*/", "*/*/", "*/*/*/"):
            for found in glob.glob(f"{place}/{depth}reference.py"):
                scope: dict[str, object] = {}
                exec(open(found).read(), scope)
                return scope["reference"]
    return None


def run(x: torch.Tensor) -> torch.Tensor:
    answer = reference()
    return copied(answer(x) if answer else x.contiguous())
