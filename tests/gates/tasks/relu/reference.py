import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)
