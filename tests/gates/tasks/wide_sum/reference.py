import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.sum(x, dim=-1)
