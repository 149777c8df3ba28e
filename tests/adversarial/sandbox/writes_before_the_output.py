import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at - 1, tl.load(x + at, mask=at < n), mask=at < n)


def run(x):
    y = torch.empty_like(x)
    double[(1,)](x, y, x.numel(), BLOCK=16)
    return y
