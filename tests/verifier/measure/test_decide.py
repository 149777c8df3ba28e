"""Decisions of the timing."""

from __future__ import annotations

from verifier.measure import decide
from verifier.measure.decide import calls_of, flush_of, in_graph_of, is_launch_bound, slots_of

US, MIB, GIB = 1e-6, 1 << 20, 1 << 30


def test_a_run_has_fifty_calls_where_nothing_forbids_it() -> None:
    assert calls_of(100 * US, 4 * MIB) == 50


def test_slow_calls_make_a_run_shorter() -> None:
    assert calls_of(0.05, 4 * MIB) == 10


def test_big_outputs_make_a_run_shorter_because_all_are_kept() -> None:
    assert calls_of(100 * US, 256 * MIB) == 12


def test_a_run_is_never_shorter_than_five_calls() -> None:
    assert calls_of(10.0, 4 * GIB) == 5


def test_at_least_two_input_sets_take_turns() -> None:
    assert (slots_of(1 * MIB), slots_of(3 * GIB)) == (4, 2)


def test_big_outputs_make_a_graph_shorter() -> None:
    assert (in_graph_of(1 * MIB), in_graph_of(1 * GIB)) == (20, 2)


def test_the_flush_is_twice_the_l2_at_least() -> None:
    assert flush_of(300 * MIB, 100 * US, 90 * US, 3.5e12).nbytes == 600 * MIB


def test_a_busy_device_needs_no_longer_flush() -> None:
    assert flush_of(50 * MIB, 5000 * US, 4900 * US, 3.5e12) == decide.Flush(256 * MIB, True)


def test_a_slow_host_gets_a_flush_that_covers_it() -> None:
    flush = flush_of(50 * MIB, 200 * US, 10 * US, 3.5e12)
    assert flush.covers
    assert flush.nbytes / 3.5e12 >= 1.3 * 200 * US


def test_no_flush_covers_a_host_that_is_slower_still() -> None:
    assert flush_of(50 * MIB, 0.1, 10 * US, 3.5e12) == decide.Flush(2 * GIB, False)


def test_a_call_is_launch_bound_when_the_device_waits_for_the_host() -> None:
    assert is_launch_bound(5 * US, 30 * US)
    assert not is_launch_bound(40 * US, 41 * US)
