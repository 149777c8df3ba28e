"""Pairs (x[p], x[P + p]) turned by the angle of their cos and sin, in fp32 for half precision."""

import torch


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.dtype in (torch.float16, torch.bfloat16)
    wide, c, s = (t.float() if half else t for t in (x, cos, sin))
    first, second = wide.chunk(2, dim=-1)
    return torch.cat((first * c - second * s, second * c + first * s), dim=-1).to(x.dtype)
