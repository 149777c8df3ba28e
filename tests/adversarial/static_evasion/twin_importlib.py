# task: tests/adversarial/tasks/energy
"""Imports Triton by name and makes its launcher with exec, as generated code does."""

from __future__ import annotations

import importlib


import torch

triton = importlib.import_module("triton")
tl = importlib.import_module("triton.language")


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


SCOPE: dict[str, object] = {"torch": torch, "triton": triton, "kernel": energy_kernel}
exec(
    """
def launch(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
""",
    SCOPE,
)
run = SCOPE["launch"]
