"""The controls of the P1 replica through the whole pipeline: sixteen of sixteen are clean."""

from __future__ import annotations

from benchmarks.fuzzoracle.scoring import score
from tests.benchmarks.fuzzoracle.conftest import Judge
from tests.benchmarks.fuzzoracle.verdicts import (  # noqa: F401 - pytest collects the tests here
    judged,
    replica,
    test_a_control_is_accepted,
    test_the_loose_test_accepts_a_control,
)

ENTRIES = replica("control")


def test_sixteen_of_sixteen_controls_are_clean(judge: Judge) -> None:
    result = score(ENTRIES, judged(ENTRIES, judge))
    assert (result.clean, result.controls) == (16, 16)
    assert result.perfect
