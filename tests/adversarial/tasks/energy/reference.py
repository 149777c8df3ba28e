import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return x * (x * x).sum(dim=-1, keepdim=True)
