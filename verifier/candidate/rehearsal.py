"""In the forkserver: one launch before any fork, for what Triton builds at first use."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def rehearse() -> None:
    """Launch a kernel of the kind that most of them are: loads, reductions, a store."""
    x = torch.ones(2, 8)
    _rows[(2,)](x, torch.empty(2), N=8)


@triton.jit  # type: ignore[untyped-decorator]
def _rows(x_ptr, y_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    tl.store(y_ptr + row, tl.sum(tl.exp(x - tl.max(x, axis=0)), axis=0))
