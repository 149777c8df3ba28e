# task: tests/gates/tasks/scatter_add
"""The same gradient, carried in fp32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(g_ptr, id_ptr, out_ptr, count, width, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    target = tl.program_id(0).to(tl.int64)
    d, t = tl.arange(0, WIDTH), tl.arange(0, BLOCK)
    acc = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, count, BLOCK):
        mine = tl.load(id_ptr + start + t, mask=start + t < count, other=-1) == target
        mask = mine[:, None] & (d < width)[None, :]
        rows = tl.load(g_ptr + (start + t)[:, None] * width + d[None, :], mask=mask, other=0.0)
        acc += tl.sum(rows.to(tl.float32), axis=0)
    tl.store(out_ptr + target * width + d, acc, mask=d < width)


def run(grad: torch.Tensor, ids: torch.Tensor, rows: int) -> torch.Tensor:
    count, width = grad.shape
    out = torch.empty((rows, width), dtype=grad.dtype, device=grad.device)
    wide = triton.next_power_of_2(width)
    scatter_kernel[(rows,)](
        grad.contiguous(), ids.contiguous(), out, count, width, WIDTH=wide, BLOCK=32
    )
    return out
