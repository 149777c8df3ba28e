"""Causal attention of one head."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    M,
    N,
    D,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    d = tl.arange(0, BD)[None, :]
    q = tl.load(q_ptr + m * D + d, mask=(m < M) & (d < D), other=0.0).to(tl.float32)
    top = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)[:, None]
        inside = (n < N) & (d < D)
        k = tl.load(k_ptr + n.to(tl.int64) * D + d, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + n.to(tl.int64) * D + d, mask=inside, other=0.0).to(tl.float32)
        key = start + tl.arange(0, BN)[None, :]
        seen = (key < N) & (key <= m)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(seen, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        # A row that has seen no key yet has no maximum: shift it by 0.
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        alpha = tl.exp(top - shift)
        p = tl.exp(s - shift[:, None])
        total = total * alpha + tl.sum(p, 1)
        # Not a dot: 0 * NaN of a key that the row must not see would leak into it.
        weighted = tl.where(seen[:, :, None], p[:, :, None] * v[None, :, :], 0.0)
        acc = acc * alpha[:, None] + tl.sum(weighted, 1)
        top = new_top
    out = acc / total[:, None]
    tl.store(o_ptr + m * D + d, out.to(o_ptr.dtype.element_ty), mask=(m < M) & (d < D))


def run(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    (M, D), N = q.shape, k.shape[0]
    out = torch.empty_like(q)
    if out.numel():
        BD = max(16, triton.next_power_of_2(D))
        causal_attention_kernel[(triton.cdiv(M, 16),)](
            q, k, v, out, M, N, D, D**-0.5, BM=16, BN=16, BD=BD
        )
    return out
