"""Scores keep every kernel of the corpus in their denominator."""

from __future__ import annotations

from benchmarks.fuzzoracle.scoring import Judged, score
from benchmarks.fuzzoracle.suite import CorpusEntry
from verifier.records import Outcome

CONTROL = CorpusEntry("good", "t", "control", "", "", "g")
BUG = CorpusEntry("bad", "t", "bug", "wrong", "often", "g")


def test_a_rejected_bug_that_the_loose_test_accepts_is_an_illusion() -> None:
    result = score([BUG], {"bad": Judged(Outcome.REJECTED, True)})
    assert (result.caught, result.illusions, result.missed) == (1, 1, 0)


def test_a_rejected_bug_that_the_loose_test_rejects_is_none() -> None:
    assert score([BUG], {"bad": Judged(Outcome.REJECTED, False)}).illusions == 0


def test_an_accepted_bug_is_missed() -> None:
    assert score([BUG], {"bad": Judged(Outcome.ACCEPTED, True)}).missed == 1


def test_a_rejected_control_is_accused() -> None:
    result = score([CONTROL], {"good": Judged(Outcome.REJECTED, True)})
    assert (result.accused, result.clean) == (1, 0)
    assert not result.perfect


def test_kernels_without_a_verdict_stay_in_the_denominator() -> None:
    result = score([CONTROL, BUG], {})
    assert (result.controls, result.wrong, result.open) == (1, 1, 2)
    assert not result.perfect


def test_an_undecided_verdict_counts_for_nothing() -> None:
    result = score([BUG], {"bad": Judged(Outcome.UNDECIDED, True)})
    assert (result.caught, result.missed, result.open) == (0, 0, 1)
