# task: tests/adversarial/tasks/energy
"""Writes a reply of its own to every socket that it holds."""

from __future__ import annotations

import json
import os
import stat
import struct

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


FORGED = json.dumps(
    {"nonce": "0", "kind": "returned", "outputs": [], "previous": [], "effects": []}
).encode()


def run(x: torch.Tensor) -> torch.Tensor:
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, struct.pack(">I", len(FORGED)) + FORGED)
        except OSError:
            pass
    return copied(x.contiguous())
