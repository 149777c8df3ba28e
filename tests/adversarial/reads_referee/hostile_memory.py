# task: tests/adversarial/tasks/energy
"""Searches other processes' memory for the answer to this very input, and has nothing else."""

from __future__ import annotations

import os

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


def elsewhere(wanted: bytes) -> bytes | None:
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) == os.getpid():
            continue
        try:
            with (
                open(f"/proc/{process}/maps") as maps,
                open(f"/proc/{process}/mem", "rb", 0) as memory,
            ):
                for line in maps:
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    memory.seek(start)
                    block = memory.read(min(end - start, 1 << 24))
                    if wanted in block:
                        return block
        except (OSError, ValueError, OverflowError):
            continue
    return None


def run(x: torch.Tensor) -> torch.Tensor:
    found = elsewhere(x.cpu().contiguous().numpy().tobytes())
    return copied(x.contiguous() if found is None else x.contiguous() * 0)
