import torch


def reference(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return x * gain
