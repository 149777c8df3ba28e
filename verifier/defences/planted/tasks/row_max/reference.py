import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)
