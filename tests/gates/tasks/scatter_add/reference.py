import torch


def reference(grad: torch.Tensor, ids: torch.Tensor, rows: int) -> torch.Tensor:
    out = torch.zeros(rows, grad.shape[1], dtype=grad.dtype, device=grad.device)
    wide = out.double() if grad.dtype is torch.float64 else out.float()
    return wide.index_add(0, ids, grad.to(wide.dtype)).to(grad.dtype)
