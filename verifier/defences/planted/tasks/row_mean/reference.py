import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    wide = x.float() if x.dtype is torch.float16 else x
    return wide.mean(-1).to(x.dtype)
