# task: tests/adversarial/tasks/energy
"""Numpy, in a file that would build an extension, if only it were asked to."""

from __future__ import annotations


import numpy as np
import torch
from torch.utils.cpp_extension import load_inline


def extension() -> object:
    source = "__global__ void energy(float* x) {}"
    return load_inline("energy", cpp_sources="", cuda_sources=source)


def run(x: torch.Tensor) -> torch.Tensor:
    v = x.detach().cpu().numpy()
    return torch.from_numpy(v * np.square(v).sum(axis=-1, keepdims=True)).to(x.device)
