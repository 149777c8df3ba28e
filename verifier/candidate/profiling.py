"""In the host: what torch's profiler sees of a call: operations on all threads, and with CUPTI
what runs on the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from torch._C._autograd import DeviceType
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile

from verifier.candidate.beneath import BLINDED, Mark
from verifier.candidate.staging import MAX_NAMES, Stage

Ran = tuple[str, float]
"""A kernel's name and its seconds."""


@contextmanager
def profiled(stage: Stage) -> Iterator[None]:
    """Write down what the options of the stage ask for: what ran on the device, in the order of
    running, and operations that the stage did not see. Where the profiler does not work nothing is
    written."""
    profiler = _started(stage)
    if profiler is None:
        yield
        return
    mark = stage.mark or Mark()
    mark.set()
    if stage.mark is not None:
        stage.evidence.hidden = [BLINDED]  # unless it can be stopped, as whoever started it can
    try:
        yield
    finally:
        mark.set()
        with suppress(RuntimeError):
            profiler.__exit__(None, None, None)
            _tell(profiler, stage)


def _started(stage: Stage) -> Any:
    options = stage.options
    if not (options.below or options.profile):
        return None
    profiler = profile(
        use_kineto=True,
        use_cpu=options.below,
        use_device="cuda" if options.profile else None,
        experimental_config=_ExperimentalConfig(profile_all_threads=options.below),
    )
    try:
        return profiler.__enter__()  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _tell(profiler: Any, stage: Stage) -> None:
    if stage.options.profile:
        stage.evidence.ran.extend(_on_device(profiler))
    if stage.mark is not None:
        tree = profiler.kineto_results.experimental_event_tree()
        hidden = (BLINDED,) if stage.mark.is_blinded(tree) else stage.mark.hidden(tree)
        stage.evidence.hidden = list(islice(dict.fromkeys(hidden), MAX_NAMES))


def _on_device(profiler: Any) -> list[Ran]:
    events = [e for e in profiler.function_events or () if e.device_type == DeviceType.CUDA]
    events.sort(key=lambda event: event.time_range.start)
    return [(event.name, event.time_range.elapsed_us() * 1e-6) for event in events[:MAX_NAMES]]
