# task: tests/adversarial/tasks/energy
"""An import hook makes a module that was never written."""

from __future__ import annotations

import importlib.abc
import importlib.util
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


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: object, target: object = None) -> object:
        return importlib.util.spec_from_loader(name, self) if name == "fast_energy" else None

    def exec_module(self, module: object) -> None:
        module.energy = lambda x: torch.einsum("ij,ik,ik->ij", x, x, x)


sys.meta_path.insert(0, Finder())
import fast_energy  # noqa: E402


def run(x: torch.Tensor) -> torch.Tensor:
    return copied(fast_energy.energy(x.contiguous()))
