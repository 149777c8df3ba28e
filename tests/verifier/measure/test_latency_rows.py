"""From timings to the rows of a verdict."""

from __future__ import annotations

import pytest

from verifier.measure.latency import make_rows
from verifier.measure.roofline import Floor
from verifier.measure.timings import Timing, Timings
from verifier.records import Clock, DeviceState, Measurement, RecordError

MS = 1e-3
STATE = DeviceState(1980, 1980, 3201, 34, 118.0)


def timing(ms: float, clock: Clock = Clock.EVENTS) -> Timing:
    return Timing(((ms * MS,) * 20, (1.01 * ms * MS,) * 20, (0.99 * ms * MS,) * 20), clock, ms * MS)


def rows(
    kernel: Timing,
    eager: Timing | None,
    *,
    floor: Floor | None = None,
    caught: str = "",
    notes: tuple[str, ...] = (),
) -> list[Measurement]:
    by_name = {"kernel": kernel} | ({"eager": eager} if eager else {})
    return make_rows("usual", Timings(by_name, notes, caught), floor, STATE, seed=1)


def test_the_speedup_is_eager_over_the_kernel() -> None:
    kernel, eager = rows(timing(2.0), timing(5.0))
    assert kernel.speedup == pytest.approx(2.5)
    assert eager.speedup is None


def test_a_row_says_how_often_and_by_what_it_was_measured() -> None:
    kernel = rows(timing(2.0), timing(5.0))[0]
    assert (kernel.n, kernel.repeats, kernel.clock) == (60, 3, Clock.EVENTS)
    assert kernel.warm_ms == pytest.approx(2.0)
    assert kernel.state == STATE


def test_a_caught_kernel_has_no_speedup_and_says_why() -> None:
    kernel, _ = rows(timing(2.0), timing(5.0), caught="the two clocks disagree")
    assert (kernel.speedup, kernel.rejected) == (None, "the two clocks disagree")


def test_below_the_floor_there_is_no_speedup_and_the_arithmetic_is_shown() -> None:
    floor = Floor(3.0 * MS, "bytes over bandwidth", trusted=True)
    kernel, eager = rows(timing(2.0), timing(5.0), floor=floor)
    assert kernel.speedup is None
    assert kernel.rejected.endswith("roofline floor of 3000.00 us: bytes over bandwidth")
    assert kernel.floor_ms == pytest.approx(3.0)
    assert not eager.rejected


def test_the_floor_of_a_cold_cache_does_not_bind_calls_without_a_flush() -> None:
    floor = Floor(3.0 * MS, "bytes over bandwidth", trusted=True)
    kernel, _ = rows(timing(2.0, Clock.REFEREE), timing(5.0, Clock.REFEREE), floor=floor)
    assert not kernel.rejected


def test_subjects_on_different_clocks_are_not_compared() -> None:
    kernel, _ = rows(timing(2.0, Clock.GRAPH), timing(5.0, Clock.EVENTS))
    assert kernel.speedup is None


def test_without_eager_there_is_no_speedup() -> None:
    assert rows(timing(2.0), None)[0].speedup is None


def test_notes_stand_with_the_kernel() -> None:
    kernel, eager = rows(timing(2.0), timing(5.0), notes=("launch-bound", "no baseline 'compile'"))
    assert kernel.note == "launch-bound; no baseline 'compile'"
    assert eager.note == ""


def test_a_claim_of_no_time_at_all_makes_a_row_that_can_be_rejected() -> None:
    kernel, _ = rows(timing(0.0), timing(5.0), caught="the two clocks disagree")
    assert kernel.latency_ms > 0


def test_a_rejected_measurement_with_a_speedup_cannot_be_built() -> None:
    with pytest.raises(RecordError, match="rejected"):
        Measurement("usual", "kernel", 1.0, 0.9, 1.1, 10, speedup=2.0, rejected="too fast")
