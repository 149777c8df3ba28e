# task: tests/adversarial/tasks/energy
"""Numpy on the host for data on a device, under words that speak of a __global__ function."""

from __future__ import annotations


import numpy as np
import torch


def by_numpy(x: torch.Tensor) -> torch.Tensor:
    v = x.detach().cpu().numpy()
    return torch.from_numpy(v * (v * v).sum(axis=-1, keepdims=True)).to(x.device)


def run(x: torch.Tensor) -> torch.Tensor:
    """Launches the __global__ function of the extension."""
    return by_numpy(x)
