"""Gradient of an embedding table: each program owns table rows, so nothing races."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_bwd_kernel(
    g_ptr, i_ptr, y_ptr, T, V, D, BV: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr
):
    v = tl.program_id(0).to(tl.int64) * BV + tl.arange(0, BV)[:, None]
    d = tl.program_id(1) * BD + tl.arange(0, BD)[None, :]
    acc = tl.zeros((BV, BD), dtype=tl.float32)
    for start in range(0, T, BT):
        t = start + tl.arange(0, BT)
        index = tl.load(i_ptr + t, mask=t < T, other=-1)
        inside = (t[:, None] < T) & (d < D)
        g = tl.load(g_ptr + t[:, None].to(tl.int64) * D + d, mask=inside, other=0.0).to(tl.float32)
        hit = v == index[None, :]
        acc += tl.sum(tl.where(hit[:, :, None], g[None, :, :], 0.0), 1)
    tl.store(y_ptr + v * D + d, acc.to(y_ptr.dtype.element_ty), mask=(v < V) & (d < D))


def run(grad, index, weight):
    grad, index = grad.contiguous(), index.contiguous()
    (T, D), V = grad.shape, weight.shape[0]
    out = torch.empty((V, D), dtype=grad.dtype, device=grad.device)
    if out.numel():
        grid = (triton.cdiv(V, 8), triton.cdiv(D, 16))
        embedding_bwd_kernel[grid](grad, index, out, T, V, D, BV=8, BT=32, BD=16)
    return out
