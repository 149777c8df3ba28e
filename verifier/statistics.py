"""Intervals and agreement of counts: Wilson's interval, McNemar's test, Cohen's kappa.

Standard library alone, because the web and the audit's report count too and hold no numpy. The
tests compare every formula with figures that were published for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``n``, with the interval of the share at the stated confidence.

    ``share``, ``low`` and ``high`` are None where n is 0: nothing was counted, so nothing is known.
    """

    hits: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE

    @property
    def text(self) -> str:
        """Such as '7/26 (26.9%, 13.7% to 46.1%)'; '0/0' alone where nothing was counted."""
        if self.share is None or self.low is None or self.high is None:
            return f"{self.hits}/{self.n}"
        return f"{self.hits}/{self.n} ({self.share:.1%}, {self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, slots=True)
class Paired:
    """McNemar's test on pairs that two judges see differently.

    ``only_first`` pairs are accepted by the first judge alone, ``only_second`` by the second alone.
    ``p_value`` is exact and two-sided; it is 0.0 only where it is below the smallest float.
    ``chi_squared`` carries Edwards' continuity correction; None without a discordant pair.
    """

    only_first: int
    only_second: int
    p_value: float
    chi_squared: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree beyond chance, on ``n`` items.

    ``kappa`` is None where chance agreement is certain (both judges always say the same one word),
    and so is its interval; also where n is 0.
    """

    n: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE

    @property
    def raw(self) -> float | None:
        """Share of items on which both agree."""
        return self.agreed / self.n if self.n else None


def wilson(hits: int, n: int, *, confidence: float = CONFIDENCE) -> Share:
    """The score interval of a share (Wilson 1927, JASA 22:209), without continuity correction.

    Raises ValueError when the counts are no counts.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share")
    if n == 0:
        return Share(hits, n, None, None, None, confidence)
    z, share = _quantile(confidence), hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and n of n the bound is exactly 0 or 1; rounding must not leave it a hair away.
    low = 0.0 if hits == 0 else centre - half
    high = 1.0 if hits == n else centre + half
    return Share(hits, n, share, low, high, confidence)


def mcnemar(only_first: int, only_second: int) -> Paired:
    """McNemar's test (1947, Psychometrika 12:153) on the discordant pairs of a 2x2 table.

    The p-value is the exact binomial one, right for any counts. Raises ValueError for negative
    counts.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"{only_first} and {only_second} are no counts")
    n, less = only_first + only_second, min(only_first, only_second)
    if n == 0:
        return Paired(0, 0, 1.0, None)
    tail = Fraction(_tail(n, less), 2**n)
    difference = max(abs(only_first - only_second) - 1, 0)
    return Paired(only_first, only_second, float(min(2 * tail, Fraction(1))), difference**2 / n)


def _tail(n: int, most: int) -> int:
    """Subsets of n things with at most so many members, as an exact integer."""
    total = term = 1
    for k in range(1, most + 1):
        term = term * (n - k + 1) // k
        total += term
    return total


def cohen_kappa(
    pairs: Iterable[tuple[Hashable, Hashable]], *, confidence: float = CONFIDENCE
) -> Agreement:
    """Cohen's kappa (1960, Educ. Psychol. Meas. 20:37) of two judges' labels for the same items.

    The interval uses the large-sample standard error of Fleiss, Cohen and Everitt (1969, Psychol.
    Bull. 72:323), clipped to [-1, 1]. For few items it is rough, and for judges who never disagreed
    it has no width: then look at ``raw`` and how many items there were.
    """
    table = Counter(pairs)
    n = table.total()
    agreed = sum(count for (one, other), count in table.items() if one == other)
    if n == 0:
        return Agreement(0, 0, None, None, None, confidence)
    first, second = _marginals(table, n)
    by_chance = sum(share * second.get(label, 0.0) for label, share in first.items())
    # Both judges used one and the same label throughout: chance explains everything.
    if len(first.keys() | second.keys()) == 1:
        return Agreement(n, agreed, None, None, None, confidence)
    observed = agreed / n
    kappa = (observed - by_chance) / (1 - by_chance)
    half = _quantile(confidence) * _kappa_error(table, first, second, observed, by_chance)
    low, high = max(kappa - half, -1.0), min(kappa + half, 1.0)
    return Agreement(n, agreed, kappa, low, high, confidence)


Table = Mapping[tuple[Hashable, Hashable], int]
Marginal = Mapping[Hashable, float]


def _marginals(table: Table, n: int) -> tuple[Marginal, Marginal]:
    first: Counter[Hashable] = Counter()
    second: Counter[Hashable] = Counter()
    for (one, other), count in table.items():
        first[one] += count
        second[other] += count
    sides: Sequence[Counter[Hashable]] = (first, second)
    one_side, other_side = ({k: v / n for k, v in side.items()} for side in sides)
    return one_side, other_side


def _kappa_error(
    table: Table, first: Marginal, second: Marginal, observed: float, by_chance: float
) -> float:
    """Standard error of a kappa that need not be zero (Fleiss, Cohen and Everitt 1969)."""
    if observed == 1:
        return 0.0  # what rounding would leave is no error
    n = sum(table.values())
    agreeing = disagreeing = 0.0
    for (one, other), count in table.items():
        crossed = second.get(one, 0.0) + first.get(other, 0.0)
        if one == other:
            agreeing += count / n * ((1 - by_chance) - crossed * (1 - observed)) ** 2
        else:
            disagreeing += count / n * crossed**2
    centre = observed * by_chance - 2 * by_chance + observed
    spread = agreeing + (1 - observed) ** 2 * disagreeing - centre**2
    return math.sqrt(max(spread, 0.0) / n) / (1 - by_chance) ** 2


def _quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence:g} is not between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)
