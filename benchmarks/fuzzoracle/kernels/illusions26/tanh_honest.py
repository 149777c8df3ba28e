"""Tanh: a Pade quotient near 0, where exp would cancel, and exp beyond."""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    s = x * x
    top = x * (135135.0 + s * (17325.0 + s * (378.0 + s)))
    bottom = 135135.0 + s * (62370.0 + s * (3150.0 + s * 28.0))
    e = tl.exp(-2.0 * tl.abs(x))
    far = (1.0 - e) / (1.0 + e)
    y = tl.where(tl.abs(x) < 1.0, top / bottom, tl.where(x < 0.0, -far, far))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        tanh_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
