import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x, p=0.1)
