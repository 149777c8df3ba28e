"""The referee's clock over N and 2N calls, held against what marks claim."""

from __future__ import annotations

import pytest

from verifier.measure.clocks import Agreement, Check, Round, Slope, check, slope

US = 1e-6


def checked(claimed_us: float, clock_us: float, *, loop_us: float = 80.0) -> Check:
    around_it = Slope((loop_us + clock_us) * US, 0.2 * US)
    return check(claimed_us * US, 0.0, around_it, Slope(loop_us * US, 0.1 * US))


def test_what_a_run_costs_once_falls_out_of_the_difference() -> None:
    one, other = Round(1.0 + 0.5, 50, 1.0 + 1.0, 100), Round(7.0 + 0.5, 50, 7.0 + 1.0, 100)
    assert one.per_call_s == pytest.approx(0.01)
    assert other.per_call_s == pytest.approx(0.01)


def test_a_long_run_needs_more_calls_than_a_short_one() -> None:
    with pytest.raises(ValueError, match="more calls"):
        Round(1.0, 50, 2.0, 50)


def test_the_slope_is_the_median_of_the_rounds_and_half_their_range() -> None:
    rounds = [Round(1.0, 1, 1.0 + step, 2) for step in (0.10, 0.14, 0.11)]
    found = slope(rounds)
    assert found.per_call_s == pytest.approx(0.11)
    assert found.spread_s == pytest.approx(0.02)


def test_no_rounds_give_no_slope() -> None:
    with pytest.raises(ValueError, match="no rounds"):
        slope([])


def test_equal_clocks_agree() -> None:
    assert checked(40, 40).agreement is Agreement.AGREES


def test_a_tenth_of_the_time_is_too_short() -> None:
    assert checked(4, 40).agreement is Agreement.TOO_SHORT


def test_a_claim_that_does_itself_no_favour_is_not_held_against_it() -> None:
    assert checked(60, 40).agreement is Agreement.TOO_LONG


def test_the_clock_vouches_for_no_call_that_is_shorter_than_its_own_noise() -> None:
    assert checked(1.0, 1.0).agreement is Agreement.COARSE


def test_marks_around_nothing_are_no_part_of_the_claim() -> None:
    found = check(43 * US, 3 * US, Slope(120 * US, 0.0), Slope(80 * US, 0.0))
    assert found.claimed_s == pytest.approx(40 * US)


def test_the_allowed_difference_is_a_share_of_the_call_and_the_noise_of_the_loop() -> None:
    found = checked(40, 40)
    assert found.allowed_s == pytest.approx((0.05 * 40 + 0.3 + 0.8 + 0.3) * US)


def test_the_arithmetic_is_said_in_one_line() -> None:
    assert checked(4, 40).text == (
        "events claim 4.00 us a call, the referee's clock says 40.00 us (loop alone 80.00 us; "
        "allowed difference 3.40 us)"
    )
