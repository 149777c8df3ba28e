"""Runs of all subjects in turns, and what the two clocks say of them."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from verifier.candidate.stopwatch import Tape
from verifier.measure import clocks
from verifier.measure.clocks import Check, Round, Slope
from verifier.measure.subjects import KERNEL, NOTHING, Timed
from verifier.measure.turns import turns

REPEATS: Final = 3
_BITS: Final = 46

Look = Callable[[Tape], None]
"""Called after each run of the kernel. Raises CaughtError when an output of it is wrong."""


@dataclass(frozen=True, slots=True)
class Mode:
    """What is around the calls. ``in_graph`` calls are captured together; 0 for no graph."""

    flush_bytes: int = 0
    in_graph: int = 0
    dense: bool = False


def tape_of(mode: Mode, calls: int) -> Tape:
    """A tape of at least so many calls, with secrets that nobody can know beforehand."""
    turns_ = max(1, calls // mode.in_graph) if mode.in_graph else calls
    return Tape(
        shifts=_secrets(turns_),
        key=(secrets.randbits(63) | 1, secrets.randbits(63)),
        flush_bytes=mode.flush_bytes,
        in_graph=_secrets(mode.in_graph),
        dense=mode.dense,
    )


def _secrets(count: int) -> tuple[int, ...]:
    return tuple(secrets.randbits(_BITS) for _ in range(count))


@dataclass(frozen=True, slots=True)
class Passed:
    """All repeats of one mode. ``groups`` holds, for each subject and repeat, the seconds that its
    marks claim of each call; ``rounds`` the referee's clock."""

    groups: Mapping[str, tuple[tuple[float, ...], ...]]
    rounds: Mapping[str, tuple[Round, ...]]

    def claimed_s(self, name: str) -> float:
        """The median over all calls."""
        return median(value for group in self.groups[name] for value in group)

    def slope(self, name: str) -> Slope:
        return clocks.slope(self.rounds[name])

    def check(self, name: str) -> Check:
        """The claim of one subject beside the referee's clock, less the loop around nothing."""
        return clocks.check(
            self.claimed_s(name), self.claimed_s(NOTHING), self.slope(name), self.slope(NOTHING)
        )

    def by_clock_s(self, name: str) -> tuple[float, ...]:
        """The referee's clock alone: one time per call for each repeat."""
        loop = self.slope(NOTHING).per_call_s
        return tuple(max(one.per_call_s - loop, 0.0) for one in self.rounds[name])


def run_pass(
    subjects: Sequence[Timed], mode: Mode, calls: int, look: Look, repeats: int = REPEATS
) -> Passed:
    """Short runs of ``calls`` and long ones of twice as many, in turns.

    Raises TimingError, NoGraphError or CaughtError of whichever subject it is.
    """
    by_name = {subject.name: subject for subject in subjects}
    walls: dict[tuple[str, int, bool], tuple[float, int]] = {}
    groups: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for turn in turns(tuple(by_name), repeats):
        tape = tape_of(mode, 2 * calls if turn.long else calls)
        run = by_name[turn.subject].play(tape)
        walls[turn.subject, turn.repeat, turn.long] = run.wall_s, run.calls
        groups[turn.subject][turn.repeat] += run.seconds
        if turn.subject == KERNEL:
            look(tape)
    return Passed(
        {name: tuple(tuple(group) for group in by.values()) for name, by in groups.items()},
        {
            name: tuple(
                Round(*walls[name, repeat, False], *walls[name, repeat, True])
                for repeat in range(repeats)
            )
            for name in by_name
        },
    )
