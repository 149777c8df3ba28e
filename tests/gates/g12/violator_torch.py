# task: tests/gates/tasks/row_softmax
"""No kernel at all."""

from __future__ import annotations

import torch


def run(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x.float() - x.float().amax(dim=-1, keepdim=True))
    return (e / e.sum(dim=-1, keepdim=True)).to(x.dtype)
