"""What ran on the device during one call, by name: whose each kernel is and how long it took.

The names come from CUPTI by way of torch's profiler in the kernel's own process, so they are
evidence, as launches and operations are, and never proof.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from verifier.subject import DeviceKernel


class Origin(StrEnum):
    """Who wrote a kernel that ran on the device."""

    OWN = "own"
    TORCH = "torch"
    """torch's own operations; which of them compute is told by their names above the device."""
    LIBRARY = "library"
    """A vendor's library, called past torch."""
    COMPILED = "torch.compile"
    MEMORY = "copies"


_MEMORY: Final = re.compile(r"^(?:Memcpy|Memset)\b")
_COMPILED: Final = re.compile(r"^triton_(?:poi|red|per|tem|for|mm)\w*_fused")
_TORCH: Final = re.compile(r"\bat::|\bc10::|at_cuda_detail|\btorch::")
_LIBRARY: Final = re.compile(
    r"cublas|cudnn|nvjet|_xmma_|splitKreduce|gemv2[NT]|gemvNSP|\bdot_kernel\b|cusparse|"
    r"\bcufft|regular_fft|vector_fft|cutensor|^(?:sm|ampere|volta|turing|hopper)\d*_\w*gemm"
)


def origin_of(name: str, launched: Collection[str]) -> Origin:
    """Whose kernel this is; ``launched`` are the names of the kernel's own launches."""
    if name in launched:
        return Origin.OWN
    for origin, pattern in (
        (Origin.MEMORY, _MEMORY),
        (Origin.COMPILED, _COMPILED),
        (Origin.TORCH, _TORCH),
        (Origin.LIBRARY, _LIBRARY),
    ):
        if pattern.search(name):
            return origin
    return Origin.OWN


@dataclass(frozen=True, slots=True)
class Trace:
    """The kernels of one call, with their origins."""

    kernels: Sequence[DeviceKernel]
    launched: Collection[str]

    def of(self, *origins: Origin) -> list[DeviceKernel]:
        """The kernels of these origins, in the order of running."""
        return [k for k in self.kernels if origin_of(k.name, self.launched) in origins]

    def share(self, *origins: Origin) -> float:
        """Their part of all time on the device, 0 to 1."""
        total = sum(kernel.seconds for kernel in self.kernels)
        return sum(kernel.seconds for kernel in self.of(*origins)) / total if total else 0.0

    def __str__(self) -> str:
        shares = ((origin, self.share(origin)) for origin in Origin if self.of(origin))
        text = ", ".join(f"{origin.value} {share:.0%}" for origin, share in shares)
        return f"time on the device: {text}"
