import torch


def reference(x: torch.Tensor, gain: float) -> torch.Tensor:
    return x * gain
