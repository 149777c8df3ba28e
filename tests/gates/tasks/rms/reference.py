import torch


def reference(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    wide = x if x.dtype is torch.float64 else x.float()
    scale = torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale).to(x.dtype) * gain
