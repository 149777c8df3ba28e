"""ELU. Near 0, exp(x) - 1 is 2t / (1 - t) with t = tanh(x / 2), which does not cancel."""

import torch
import triton
import triton.language as tl


@triton.jit
def elu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    h = 0.5 * x
    s = h * h
    top = h * (135135.0 + s * (17325.0 + s * (378.0 + s)))
    bottom = 135135.0 + s * (62370.0 + s * (3150.0 + s * 28.0))
    t = top / bottom
    negative = tl.where(x > -1.0, 2.0 * t / (1.0 - t), tl.exp(x) - 1.0)
    y = tl.where(x > 0.0, x, negative)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        elu_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
