"""Attention in which query m sees the keys up to m + N - M, in fp32 for half precision.

What a key that a query must not see holds, NaN included, does not reach that query.
"""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    half = q.dtype in (torch.float16, torch.bfloat16)
    wide_q, wide_k, wide_v = (t.float() if half else t for t in (q, k, v))
    queries, keys = q.shape[0], k.shape[0]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
    scores = (wide_q @ wide_k.mT) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1)
    terms = (weights[:, :, None] * wide_v).masked_fill(~seen[:, :, None], 0.0)
    return terms.sum(1).to(q.dtype)
