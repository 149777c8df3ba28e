# task: tests/gates/tasks/row_softmax
"""Honest: autotune with early_config_prune that keeps blocks as wide as the row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def keep_wide(configs, named_args, **kwargs):
    n = named_args["n_cols"]
    fit = [c for c in configs if c.kwargs["BLOCK"] >= n]
    return fit[:3]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": b}, num_warps=w)
        for b in (64, 128, 256, 512, 1024, 2048, 4096)
        for w in (4, 8)
    ],
    key=["n_cols"],
    prune_configs_by={"early_config_prune": keep_wide},
)
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1])
    return y
