"""Does what a device's events claim agree with the referee's own clock?

The referee reads its clock around whole runs of N and of 2N calls. The difference divided by N is
the time of one turn of the loop, free of what a run costs once. The same loop around nothing, in
the referee's own process, gives what the loop itself takes; what is left is the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final

SHARE: Final = 0.05
"""Share of the time of a call by which the two clocks may differ."""
LOOP_SHARE: Final = 0.01
"""Share of the loop around it that counts as its own noise: its length is known no better."""
READING_S: Final = 0.3e-6
"""What reading marks and clocks is worth at best."""
COARSE: Final = 0.5
"""Where the clock's own uncertainty is more than this share of the call, it vouches for nothing."""


@dataclass(frozen=True, slots=True)
class Round:
    """One short and one long run of the same loop, by the referee's clock."""

    short_s: float
    short_calls: int
    long_s: float
    long_calls: int

    def __post_init__(self) -> None:
        if not 0 < self.short_calls < self.long_calls:
            raise ValueError("the long run needs more calls than the short one")

    @property
    def per_call_s(self) -> float:
        """(T(2N) - T(N)) / N: what both runs cost once falls out."""
        return (self.long_s - self.short_s) / (self.long_calls - self.short_calls)


@dataclass(frozen=True, slots=True)
class Slope:
    """Seconds of one turn of the loop: the median of the rounds, and half their range."""

    per_call_s: float
    spread_s: float


def slope(rounds: Sequence[Round]) -> Slope:
    """Raises ValueError without rounds."""
    if not rounds:
        raise ValueError("no rounds")
    values = [one.per_call_s for one in rounds]
    return Slope(median(values), (max(values) - min(values)) / 2)


class Agreement(StrEnum):
    """What the referee's clock has to say about a claim."""

    AGREES = "agrees"
    TOO_SHORT = "too short"
    """The claim is shorter than the referee's clock admits: something ran outside of the marks, or
    the marks lie, or the host could not keep the device busy."""
    TOO_LONG = "too long"
    """It does itself no favour: the marks enclose gaps that an unbroken stream does not have."""
    COARSE = "coarse"
    """The clock is too coarse for so short a call."""


@dataclass(frozen=True, slots=True)
class Check:
    """A claim beside the referee's clock, all per call and in seconds."""

    claimed_s: float
    """By the marks, less what marks around nothing claim."""
    clock_s: float
    """By the referee's clock, less the loop around nothing."""
    loop_s: float
    noise_s: float
    """How well the clock knows ``clock_s``."""

    @property
    def allowed_s(self) -> float:
        return SHARE * max(self.clock_s, self.claimed_s) + self.noise_s

    @property
    def agreement(self) -> Agreement:
        if self.claimed_s < self.clock_s - self.allowed_s:
            return Agreement.TOO_SHORT
        if self.noise_s > COARSE * max(self.clock_s, self.claimed_s):
            return Agreement.COARSE
        if self.claimed_s > self.clock_s + self.allowed_s:
            return Agreement.TOO_LONG
        return Agreement.AGREES

    @property
    def text(self) -> str:
        """The arithmetic in one line."""
        return (
            f"events claim {_us(self.claimed_s)} a call, the referee's clock says "
            f"{_us(self.clock_s)} (loop alone {_us(self.loop_s)}; allowed difference "
            f"{_us(self.allowed_s)})"
        )


def check(claimed_s: float, empty_s: float, around_it: Slope, around_nothing: Slope) -> Check:
    """Hold a claim (the median of its marks) against the clock.

    ``empty_s`` is what marks around nothing claim; ``around_it`` and ``around_nothing`` are slopes
    of the same loop.
    """
    noise = around_it.spread_s + around_nothing.spread_s
    noise += LOOP_SHARE * around_nothing.per_call_s + READING_S
    return Check(
        claimed_s=max(claimed_s - empty_s, 0.0),
        clock_s=max(around_it.per_call_s - around_nothing.per_call_s, 0.0),
        loop_s=around_nothing.per_call_s,
        noise_s=noise,
    )


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us"
