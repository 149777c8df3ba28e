# task: tests/adversarial/tasks/energy
"""The work of torch, as base64, in exec."""

from __future__ import annotations

import base64

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


HIDDEN = base64.b64encode(b"def work(x): return x * (x * x).sum(dim=-1, keepdim=True)")
SCOPE: dict[str, object] = {}
exec(base64.b64decode(HIDDEN), SCOPE)


def run(x: torch.Tensor) -> torch.Tensor:
    return copied(SCOPE["work"](x.contiguous()))
