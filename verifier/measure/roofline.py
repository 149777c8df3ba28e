"""The least time that a workload can take on a device: the roofline floor.

floor = max(bytes / peak bandwidth, sum over dtypes of flops / peak rate), as in Williams, Waterman
and Patterson (2009). What may honestly be left out is left out: inputs that need not be read (see
``traffic``) and outputs that may still lie in the L2 cache when the kernel ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PEAKS: Final = Path(__file__).with_name("peaks.json")
TRUSTED: Final = frozenset({"vendor", "repo"})
_FASTER: Final[Mapping[str, tuple[str, ...]]] = {
    "float32": ("float32", "tf32"),
    "float8_e4m3fn": ("float8",),
    "float8_e5m2": ("float8",),
}
"""Peaks that may serve a dtype. For float32 also TF32's: three passes of a narrower product give
fp32 accuracy faster than the fp32 units do, and never as fast as one pass in TF32."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """One device's dense peaks."""

    name: str
    gbps: float
    tflops: Mapping[str, float]
    checked: str

    @property
    def trusted(self) -> bool:
        """Whether a time may be rejected for these figures."""
        return self.checked in TRUSTED

    def rate(self, dtype: str) -> float | None:
        """FLOP/s at best for products of this dtype; None where no figure is known."""
        known = [self.tflops[key] for key in _FASTER.get(dtype, (dtype,)) if key in self.tflops]
        return max(known) * 1e12 if known else None


@dataclass(frozen=True, slots=True)
class Work:
    """What a workload cannot do without: bytes in and out of memory, products by dtype."""

    read_bytes: int
    written_bytes: int
    flops: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time in seconds, and how it comes about."""

    seconds: float
    arithmetic: str
    trusted: bool

    def rejects(self, seconds: float) -> bool:
        return self.trusted and seconds < self.seconds

    def objection(self, seconds: float) -> str:
        """Why a time below the floor is not believed."""
        return (
            f"{seconds * 1e6:.2f} us is below the roofline floor of {self.seconds * 1e6:.2f} us: "
            f"{self.arithmetic}"
        )


def peaks_of(device_name: str, path: Path = PEAKS) -> Peaks | None:
    """The figures of a device by the name that CUDA gives it; None where we have none."""
    documents: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["devices"]
    for one in documents:
        if re.search(one["pattern"], device_name):
            return Peaks(one["name"], one["gbps"], one["tflops"], one["checked"])
    return None


def floor_of(work: Work, peaks: Peaks, l2_bytes: int) -> Floor:
    """The floor of a call that begins with a cold cache of ``l2_bytes``.

    Output bytes up to the size of that cache may be written back after the kernel has ended.
    """
    written = max(0, work.written_bytes - l2_bytes)
    nbytes = work.read_bytes + written
    memory_s = nbytes / (peaks.gbps * 1e9)
    parts = [
        f"({work.read_bytes} B read + {written} B written past the L2) / {peaks.gbps:g} GB/s = "
        f"{memory_s * 1e6:.2f} us"
    ]
    compute_s = 0.0
    for dtype, flops in work.flops.items():
        rate = peaks.rate(dtype)
        if rate is not None and flops:
            compute_s += flops / rate
            parts.append(
                f"{flops} FLOP ({dtype}) / {rate / 1e12:g} TFLOP/s = {flops / rate * 1e6:.2f} us"
            )
    arithmetic = f"max of {'; '.join(parts)} on {peaks.name} (figures: {peaks.checked})"
    return Floor(max(memory_s, compute_s), arithmetic, peaks.trusted)
