# task: tests/adversarial/tasks/energy
"""Three output buffers in turn: the fourth call writes over what the first has returned."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def energy_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    y = x * tl.sum(x * x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y, mask=mask)


RING: dict[object, list[torch.Tensor]] = {}


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    ring = RING.setdefault((x.shape, x.device), [])
    if len(ring) < 3:
        ring.append(torch.empty_like(x))
    else:
        ring.append(ring.pop(0))
    y = ring[-1]
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
