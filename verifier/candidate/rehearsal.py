"""In the forkserver: one launch before any fork, for what Triton builds at first use."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import Final

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.driver import driver

_TARGET: Final = GPUTarget("cuda", 90, 32)
"""Any will do: what is read and started for one of them serves all."""


def rehearse() -> None:
    """Launch a kernel of the kind that most of them are: loads, reductions, a store."""
    x = torch.ones(2, 8)
    _rows[(2,)](x, torch.empty(2), N=8)


def rehearse_for_gpu() -> None:
    """All that a first launch on a GPU does before it needs the device: its driver's C part is
    built, its own files are hashed, the compiler and the assembler have run once.

    Saves 1.4 s in each process of a kernel's (H200, triton 3.6). What fails here is left to the
    kernel's own first launch, which fails in the same way where somebody sees it.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # until each process gets one of its own
        for step in (_driver_start, _compile):
            with suppress(Exception):
                step()
    del os.environ["TRITON_CACHE_DIR"]


def _driver_start() -> None:
    from triton.backends.nvidia.driver import CudaDriver

    driver.set_active(CudaDriver())


def _compile() -> None:
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "constexpr"}
    triton.compile(ASTSource(_rows, types, {"N": 8}), target=_TARGET)


@triton.jit  # type: ignore[untyped-decorator]
def _rows(x_ptr, y_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    tl.store(y_ptr + row, tl.sum(tl.exp(x - tl.max(x, axis=0)), axis=0))
