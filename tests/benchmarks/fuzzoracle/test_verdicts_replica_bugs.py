"""The bugs of the P1 replica through the whole pipeline: ten of ten are flagged."""

from __future__ import annotations

from benchmarks.fuzzoracle.scoring import score
from tests.benchmarks.fuzzoracle.conftest import Judge
from tests.benchmarks.fuzzoracle.verdicts import (  # noqa: F401 - pytest collects the tests here
    judged,
    replica,
    test_a_bug_of_the_replica_is_flagged,
)

ENTRIES = replica("bug")


def test_ten_of_ten_bugs_are_caught(judge: Judge) -> None:
    result = score(ENTRIES, judged(ENTRIES, judge))
    assert (result.caught, result.wrong) == (10, 10)
    assert result.perfect


def test_only_three_bugs_of_the_replica_pass_the_loose_test(judge: Judge) -> None:
    """The paper declares that all ten do; measured at our usual shapes, these do."""
    passing = {label for label, one in judged(ENTRIES, judge).items() if one.loose_accepted}
    assert passing == {
        "softmax_llm_buggy",
        "softmax_triton_buggy",
        "flash_attention_triton_buggy",
    }
