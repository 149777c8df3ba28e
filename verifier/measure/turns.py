"""Who is timed when: subjects take turns within each repeat, so that a clock that drifts, a device
that warms up and a neighbour that wakes hit all of them alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of one subject."""

    repeat: int
    subject: str
    long: bool


def turns(subjects: Sequence[str], repeats: int) -> Iterator[Turn]:
    """Short runs of all subjects, then long ones (in every other repeat the other way round); each
    repeat begins with the next subject."""
    for repeat in range(repeats):
        first = repeat % len(subjects)
        order = [*subjects[first:], *subjects[:first]]
        for long in (bool(repeat % 2), not repeat % 2):
            for subject in order:
                yield Turn(repeat, subject, long)
