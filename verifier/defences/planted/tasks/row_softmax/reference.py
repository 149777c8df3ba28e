import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
