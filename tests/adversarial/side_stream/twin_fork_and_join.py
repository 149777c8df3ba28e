# task: tests/adversarial/tasks/energy
"""A stream of its own, which waits for the caller's and is waited for."""

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


def energy(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    energy_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


STREAMS: list[torch.cuda.Stream] = []


def run(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        return energy(x)
    if not STREAMS:
        STREAMS.append(torch.cuda.Stream())
    side, current = STREAMS[0], torch.cuda.current_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        y = energy(x)
    current.wait_stream(side)
    x.record_stream(side)
    y.record_stream(current)
    return y
