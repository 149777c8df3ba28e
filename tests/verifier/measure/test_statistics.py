"""Medians and their intervals."""

from __future__ import annotations

import pytest

from verifier.measure.statistics import grouped_interval, median_interval


def test_the_median_is_that_of_all_samples() -> None:
    found = grouped_interval([[1.0, 2.0, 3.0], [4.0, 5.0]])
    assert (found.median, found.n) == (3.0, 5)


def test_repeats_that_differ_make_the_interval_wider_than_their_calls_do() -> None:
    groups = [[1.0] * 50, [1.1] * 50, [1.2] * 50]
    grouped = grouped_interval(groups)
    pooled = median_interval([value for group in groups for value in group])
    assert (grouped.low, grouped.high) == (1.0, 1.2)
    assert pooled.high - pooled.low < grouped.high - grouped.low


def test_the_same_samples_give_the_same_interval() -> None:
    groups = [[1.0, 1.3, 1.1], [1.2, 0.9]]
    assert grouped_interval(groups, seed=4) == grouped_interval(groups, seed=4)


def test_the_interval_holds_the_median() -> None:
    found = grouped_interval([[5.0], [7.0], [6.0]])
    assert found.low <= found.median <= found.high


def test_no_samples_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no samples"):
        grouped_interval([[], []])
