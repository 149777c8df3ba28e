"""softmax(q k^T / sqrt(D)) v for one head, in fp32 for half precision."""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    half = q.dtype in (torch.float16, torch.bfloat16)
    wide_q, wide_k, wide_v = (t.float() if half else t for t in (q, k, v))
    scores = (wide_q @ wide_k.mT) * q.shape[-1] ** -0.5
    return (torch.softmax(scores, dim=-1) @ wide_v).to(q.dtype)
