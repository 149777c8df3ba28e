"""In the host: what runs on the device during a call, as torch's profiler (CUPTI) sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from verifier.candidate.staging import MAX_NAMES

Ran = tuple[str, float]
"""A kernel's name and its seconds."""


@contextmanager
def profiled(ran: list[Ran], *, on: bool) -> Iterator[None]:
    """Fill ``ran`` in the order of running; where the profiler does not work it stays empty."""
    profiler = _started() if on else None
    try:
        yield
    finally:
        if profiler is not None:
            with suppress(RuntimeError):
                profiler.stop()
                ran.extend(_on_device(profiler))


def _started() -> Any:
    profiler = profile(activities=[ProfilerActivity.CUDA])
    try:
        profiler.start()
    except RuntimeError:
        return None
    return profiler


def _on_device(profiler: Any) -> list[Ran]:
    events = [e for e in profiler.events() or () if e.device_type == DeviceType.CUDA]
    events.sort(key=lambda event: event.time_range.start)
    return [(event.name, event.time_range.elapsed_us() * 1e-6) for event in events[:MAX_NAMES]]
