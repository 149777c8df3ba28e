import triton
import triton.language as tl


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n, other=1.0) * 2)


def run(x):
    double[(1,)](x, x.numel(), BLOCK=16)
    return x.clone()
