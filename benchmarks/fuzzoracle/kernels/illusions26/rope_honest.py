"""Rotary embedding, half rotation."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, n, P, BLOCK: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = pair < n
    first = pair // P * 2 * P + pair % P
    x1 = tl.load(x_ptr + first, mask=mask, other=0.0).to(tl.float32)
    x2 = tl.load(x_ptr + first + P, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(cos_ptr + pair, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + pair, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + first, (x1 * c - x2 * s).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + first + P, (x2 * c + x1 * s).to(y_ptr.dtype.element_ty), mask=mask)


def run(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    y = torch.empty_like(x)
    n = cos.numel()
    if n:
        rope_kernel[(triton.cdiv(n, 1024),)](x, cos, sin, y, n, cos.shape[-1], BLOCK=1024)
    return y
