"""x + b, b broadcast over the rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, b_ptr, y_ptr, n, H, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + offsets % H, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + offsets, (x + b).to(y_ptr.dtype.element_ty), mask=mask)


def run(x, b):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        add_kernel[(triton.cdiv(n, 1024),)](x, b, y, n, x.shape[-1], BLOCK=1024)
    return y
