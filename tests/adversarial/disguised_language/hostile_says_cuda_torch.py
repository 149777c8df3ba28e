# task: tests/adversarial/tasks/energy
"""Torch on a thread of its own, in a file that speaks of load_inline."""

from __future__ import annotations


import threading

import torch

# load_inline would take half a minute here


def run(x: torch.Tensor) -> torch.Tensor:
    box: list[torch.Tensor] = []
    worker = threading.Thread(target=lambda: box.append(x * (x * x).sum(dim=-1, keepdim=True)))
    worker.start()
    worker.join()
    return box[0]
