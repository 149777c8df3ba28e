# task: tests/adversarial/tasks/energy
"""Torch computes; what the process would write down about it is switched off."""

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


for name, module in list(sys.modules.items()):
    if name.endswith("candidate.staging"):
        module.Stage._note = lambda self, func, values: None
    if name.endswith("candidate.witness"):
        launch = module.Launch

        def arrive(self: object, what: str, arguments: object, find: object) -> list[torch.Tensor]:
            self.launches.append(launch((), ()))
            return []

        module.Witness.arrive = arrive


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    return copied(x * (x * x).sum(dim=-1, keepdim=True))
