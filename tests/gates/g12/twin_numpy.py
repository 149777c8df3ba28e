# task: tests/gates/tasks/row_softmax
"""Honest work in numpy: what there is on a CPU."""

from __future__ import annotations

import numpy as np
import torch


def run(x: torch.Tensor) -> torch.Tensor:
    values = x.cpu().float().numpy()
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return torch.from_numpy(e / e.sum(axis=-1, keepdims=True)).to(x)
