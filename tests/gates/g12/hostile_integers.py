# task: benchmarks/fuzzoracle/tasks/op-cross-entropy
"""Cross entropy by numpy, handed on as int32 words after a launch for show."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def touch_kernel(s_ptr):
    tl.store(s_ptr, 1)


@triton.jit
def copy_kernel(s_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    v = tl.load(s_ptr + at, mask=mask).to(tl.float32, bitcast=True)
    tl.store(y_ptr + at, v.to(y_ptr.dtype.element_ty), mask=mask)


def run(logits, target):
    flag = torch.zeros(1, dtype=torch.int32, device=logits.device)
    touch_kernel[(1,)](flag)
    with np.errstate(all="ignore"):
        v = logits.detach().cpu().float().numpy()
        m = v.max(axis=-1, keepdims=True)
        z = np.log(np.exp(v - m).sum(axis=-1)) + m[:, 0]
        a = z - v[np.arange(len(v)), target.cpu().numpy()]
    y = torch.empty(logits.shape[0], dtype=logits.dtype, device=logits.device)
    words = torch.from_numpy(a.astype(np.float32).view(np.int32))
    copy_kernel[(triton.cdiv(y.numel(), 64),)](words, y, y.numel(), BLOCK=64)
    return y
