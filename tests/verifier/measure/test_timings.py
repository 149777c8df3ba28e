"""Which clock is believed, on simulated devices: what each liar claims, and what becomes of it."""

from __future__ import annotations

import pytest

from tests.verifier.measure.simulated import US, Simulated, eager, kernel, nothing
from verifier.candidate.stopwatch import Tape
from verifier.candidate.timed import CaughtError
from verifier.measure.timings import Sizes, Timings, Watch
from verifier.measure.trial import Look
from verifier.records import Clock

SIZES = Sizes(l2=50 << 20, inputs=1 << 20, outputs=1 << 20)


def unseen(tape: Tape) -> None:
    """A look that finds nothing wrong."""


def timed(subject: Simulated, *baselines: Simulated, look: Look = unseen) -> Timings:
    return Watch((subject, *(baselines or (eager(),)), nothing()), SIZES, look).time()


def median_us(timings: Timings, name: str = "kernel") -> float:
    values = sorted(s for group in timings.by_name[name].groups for s in group)
    return values[len(values) // 2] / US


def test_a_kernel_that_keeps_the_device_busy_is_timed_by_events() -> None:
    timings = timed(kernel(200, 30))
    assert (timings.by_name["kernel"].clock, timings.caught) == (Clock.EVENTS, "")
    assert median_us(timings) == pytest.approx(221, abs=1)


def test_the_warm_time_stands_beside_the_cold_one() -> None:
    warm_s = timed(kernel(200, 30)).by_name["kernel"].warm_s
    assert warm_s == pytest.approx(201 * US)


def test_every_subject_is_timed_in_as_many_repeats() -> None:
    timings = timed(kernel(200, 30), eager(), Simulated("compile", 50 * US, 55 * US, 20 * US))
    assert {name: len(one.groups) for name, one in timings.by_name.items()} == {
        "kernel": 3,
        "eager": 3,
        "compile": 3,
    }


def test_a_launch_bound_kernel_is_timed_through_a_graph_and_labelled_so() -> None:
    timings = timed(kernel(5, 40))
    assert timings.by_name["kernel"].clock is Clock.GRAPH
    assert timings.notes[0].startswith("launch-bound: the device needs 5.5 us")
    assert median_us(timings) == pytest.approx(6.5, abs=0.2)


def test_a_launch_bound_kernel_that_cannot_be_captured_gets_the_referees_clock() -> None:
    timings = timed(kernel(5, 40, capturable=False))
    assert timings.by_name["kernel"].clock is Clock.REFEREE
    assert "cannot be captured" in timings.notes[0]
    assert "not graph-timed" in timings.notes[1]
    assert median_us(timings) == pytest.approx(39, abs=2)


def test_without_events_all_subjects_are_on_the_referees_clock() -> None:
    timings = timed(kernel(5, 40, capturable=False))
    assert timings.by_name["eager"].clock is Clock.REFEREE


def test_a_baseline_that_cannot_be_captured_is_left_out_of_the_graph() -> None:
    stuck = Simulated("compile", 5 * US, 5 * US, 40 * US, capturable=False)
    timings = timed(kernel(5, 40), eager(), stuck)
    assert set(timings.by_name) == {"kernel", "eager"}
    assert "compile cannot be captured" in timings.notes[0]


@pytest.mark.parametrize("device_us", [5, 50, 500, 5000])
def test_events_ten_times_too_small_are_caught(device_us: float) -> None:
    caught = timed(kernel(device_us, 30, claim=0.1)).caught
    assert "the two clocks disagree" in caught
    assert "the referee's clock says" in caught


@pytest.mark.parametrize("device_us", [5, 50, 500, 5000])
def test_small_events_of_a_kernel_that_refuses_graphs_are_not_used(device_us: float) -> None:
    timings = timed(kernel(device_us, 30, claim=0.1, capturable=False))
    assert timings.by_name["kernel"].clock is Clock.REFEREE
    assert median_us(timings) >= 0.9 * device_us


@pytest.mark.parametrize("device_us", [5, 50, 500, 5000])
def test_work_that_runs_beside_the_flush_is_caught(device_us: float) -> None:
    assert timed(kernel(device_us, 30, hides_in_flush=True)).caught


@pytest.mark.parametrize("device_us", [5, 50, 500])
def test_hidden_work_of_a_kernel_that_refuses_graphs_is_on_the_clock(device_us: float) -> None:
    timings = timed(kernel(device_us, 30, hides_in_flush=True, capturable=False))
    assert median_us(timings) >= 0.9 * device_us


@pytest.mark.parametrize("device_us", [2, 5, 20, 80, 300, 3000])
@pytest.mark.parametrize("host_us", [6, 40, 150])
def test_no_honest_kernel_is_accused(device_us: float, host_us: float) -> None:
    timings = timed(kernel(device_us, host_us), eager(2 * device_us, 3 * host_us))
    assert not timings.caught
    assert median_us(timings) >= device_us


def test_a_kernel_whose_host_waits_in_every_call_is_not_accused() -> None:
    """A call that asks the device for a value stops the stream, which no mark can see."""
    waiting = kernel(20, 900, capturable=False)
    assert not timed(waiting).caught


def test_a_wrong_timed_output_rejects_the_time() -> None:
    def look(tape: Tape) -> None:
        raise CaughtError("the output of timed call 7 of 50 is wrong")

    timings = timed(kernel(200, 30), look=look)
    assert "timed call 7" in timings.caught
    assert set(timings.by_name) == {"kernel"}
