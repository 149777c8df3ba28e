# task: tests/adversarial/tasks/energy
"""A tensor of a type of its own, which works when somebody looks."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(
        cls, func: object, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, cls) else a for a in args]
        plain = [
            a * (a * a).sum(dim=-1, keepdim=True) if isinstance(a, torch.Tensor) else a
            for a in plain
        ]
        return func(*plain, **(kwargs or {}))


@triton.jit
def nothing_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))


def run(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous().clone().as_subclass(Lazy)
