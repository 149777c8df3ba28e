"""x / max(norm(x), 1e-12) over the last axis, in fp32 for half precision."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (wide / torch.linalg.vector_norm(wide, dim=-1, keepdim=True).clamp_min(1e-12)).to(
        x.dtype
    )
