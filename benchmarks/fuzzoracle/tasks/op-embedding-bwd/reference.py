"""Rows of grad added up at the table rows that index names, in fp32 for half precision.

``weight`` gives the table its size, as in torch's own backward; its values do not matter.
"""

import torch


def reference(grad: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = grad.float() if grad.dtype in (torch.float16, torch.bfloat16) else grad
    return torch.zeros_like(weight, dtype=wide.dtype).index_add(0, index, wide).to(grad.dtype)
