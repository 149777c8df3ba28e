"""What a set of verdicts says about the verifier: recall, false positives, illusions.

The denominator is the corpus as its index lists it. A kernel without a verdict, or with an
undecided one, stays in it and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.fuzzoracle.suite import CorpusEntry
from verifier.records import Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """What the verifier said of one kernel: its outcome, and whether the loose test accepted it."""

    outcome: Outcome
    loose_accepted: bool | None


@dataclass(frozen=True, slots=True)
class Score:
    """Counts over one corpus. Recall is caught / wrong; false positives are ``accused``."""

    controls: int
    clean: int
    accused: int
    wrong: int
    caught: int
    missed: int
    illusions: int
    """Wrong kernels that the loose test accepted and the gates rejected."""
    open: int
    """Kernels without a verdict, or with an undecided one."""

    @property
    def perfect(self) -> bool:
        return self.clean == self.controls and self.caught == self.wrong


def score(entries: Iterable[CorpusEntry], verdicts: Mapping[str, Judged]) -> Score:
    """The score of a corpus under verdicts by label."""
    counts = dict.fromkeys(
        ("controls", "clean", "accused", "wrong", "caught", "missed", "illusions", "open"), 0
    )
    for entry in entries:
        for count in _counts_of(entry, verdicts.get(entry.label)):
            counts[count] += 1
    return Score(**counts)


def _counts_of(entry: CorpusEntry, judged: Judged | None) -> Iterable[str]:
    """The counts that one kernel enters."""
    control = entry.role == "control"
    yield "controls" if control else "wrong"
    if judged is None or judged.outcome is Outcome.UNDECIDED:
        yield "open"
    elif judged.outcome is Outcome.ACCEPTED:
        yield "clean" if control else "missed"
    else:
        yield "accused" if control else "caught"
        if not control and judged.loose_accepted:
            yield "illusions"
