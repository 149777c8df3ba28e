"""Intervals and agreement: published figures, and what must hold for any counts."""

from __future__ import annotations

import math
import random

import pytest

from verifier.statistics import cohen_kappa, mcnemar, wilson


def test_wilson_gives_the_published_intervals() -> None:
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        share = wilson(hits, n)
        assert share.low == pytest.approx(low, abs=5e-5)
        assert share.high == pytest.approx(high, abs=5e-5)


def test_wilson_of_none_and_of_all_ends_exactly_at_the_edge() -> None:
    assert wilson(0, 7).low == 0.0
    assert wilson(7, 7).high == 1.0


def test_wilson_of_nothing_counted_says_nothing() -> None:
    empty = wilson(0, 0)
    assert (empty.share, empty.low, empty.high, empty.text) == (None, None, None, "0/0")


def test_wilson_narrows_with_more_items() -> None:
    few, many = wilson(5, 10), wilson(500, 1000)
    assert few.low is not None
    assert many.low is not None
    assert few.low < many.low < 0.5


@pytest.mark.parametrize(("hits", "n"), [(-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_count(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(hits, n)


def test_wilson_writes_its_share_with_its_interval() -> None:
    assert wilson(81, 263).text == "81/263 (30.8%, 25.5% to 36.6%)"


def test_mcnemar_is_the_exact_binomial_for_few_pairs() -> None:
    # 2 * (1 + 9 + 36) / 2**9
    assert mcnemar(7, 2).p_value == pytest.approx(92 / 512)


def test_mcnemar_corrects_its_chi_squared_as_edwards_does() -> None:
    assert mcnemar(59, 6).chi_squared == pytest.approx((59 - 6 - 1) ** 2 / 65)


def test_mcnemar_does_not_care_which_judge_comes_first() -> None:
    assert mcnemar(3, 11).p_value == mcnemar(11, 3).p_value


def test_mcnemar_of_equal_counts_is_certain_of_nothing() -> None:
    assert mcnemar(4, 4).p_value == 1.0
    assert mcnemar(4, 4).chi_squared == 0.0


def test_mcnemar_without_a_discordant_pair_has_no_statistic() -> None:
    assert (mcnemar(0, 0).p_value, mcnemar(0, 0).chi_squared) == (1.0, None)


def test_mcnemar_stays_exact_where_floats_would_overflow() -> None:
    # 1 + 1501 + C(1501, 2) + ... over 2**1501: beyond a float's range on the way, not at the end.
    p = mcnemar(900, 601).p_value
    assert 0 < p < 1e-13


def kappa_pairs(table: list[list[int]]) -> list[tuple[int, int]]:
    """A table of counts as the pairs that make it up."""
    return [
        (row, column)
        for row, counts in enumerate(table)
        for column, count in enumerate(counts)
        for _ in range(count)
    ]


def test_kappa_of_a_two_by_two_table_worked_by_hand() -> None:
    """Observed 35 of 50; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; so (0.7 - 0.5) / 0.5."""
    agreement = cohen_kappa(kappa_pairs([[20, 5], [10, 15]]))
    assert agreement.kappa == pytest.approx(0.4)
    assert agreement.raw == pytest.approx(0.7)


def test_kappa_is_one_for_judges_who_always_agree() -> None:
    agreement = cohen_kappa(kappa_pairs([[8, 0], [0, 5]]))
    assert (agreement.kappa, agreement.low, agreement.high) == (1.0, 1.0, 1.0)


def test_kappa_is_zero_for_judges_who_agree_as_chance_does() -> None:
    assert cohen_kappa(kappa_pairs([[9, 3], [3, 1]])).kappa == pytest.approx(0.0)


def test_kappa_is_negative_for_judges_who_contradict_each_other() -> None:
    assert cohen_kappa(kappa_pairs([[0, 6], [6, 0]])).kappa == pytest.approx(-1.0)


def test_kappa_says_nothing_where_only_one_word_was_ever_used() -> None:
    agreement = cohen_kappa([("accepted", "accepted")] * 9)
    assert (agreement.kappa, agreement.raw) == (None, 1.0)
    assert cohen_kappa([]).kappa is None


def test_kappa_is_zero_for_a_judge_who_knows_one_word() -> None:
    agreement = cohen_kappa([("yes", "yes"), ("yes", "yes"), ("yes", "no")])
    assert agreement.kappa == pytest.approx(0.0)


def test_kappas_interval_holds_its_promise_on_drawn_tables() -> None:
    """Of 300 samples of 150 items from one table, about 95% of the intervals hold its kappa."""
    cells = {(0, 0): 0.5, (0, 1): 0.1, (1, 0): 0.15, (1, 1): 0.25}
    observed, by_chance = 0.75, 0.6 * 0.65 + 0.4 * 0.35
    truth = (observed - by_chance) / (1 - by_chance)
    drawer = random.Random(3)  # noqa: S311 - a fixed sample, no secret
    held = 0
    for _ in range(300):
        drawn = drawer.choices(list(cells), list(cells.values()), k=150)
        agreement = cohen_kappa(drawn)
        assert agreement.low is not None
        assert agreement.high is not None
        held += agreement.low <= truth <= agreement.high
    assert 0.91 < held / 300 < 0.985


def test_a_confidence_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, confidence=95)


def test_more_confidence_is_a_wider_interval() -> None:
    sure, surer = wilson(5, 20), wilson(5, 20, confidence=0.99)
    assert sure.high is not None
    assert surer.high is not None
    assert surer.high > sure.high
    assert math.isclose(surer.share or 0, 0.25)
