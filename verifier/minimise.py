"""The smallest shape at which a failure still shows.

Greedy and deterministic: halve every dim together, then shrink one dim at a time (tiny sizes,
the contract's candidates, then ever smaller cuts down to one) until nothing smaller fails. Seed,
dtypes, fill and parameters stay as they are, so the smallest case replays like the first one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from verifier.contract import Contract, Dim
from verifier.records import CaseRecord

Dims = dict[str, int]

TINY: Final = (1, 2, 3)
"""Sizes tried first; zero is not among them, because an empty tensor fails in another way."""


def smallest(
    contract: Contract,
    case: CaseRecord,
    still_fails: Callable[[CaseRecord], bool],
    *,
    max_trials: int,
    max_seconds: float = 20.0,
) -> CaseRecord:
    """The case with its dims shrunk as far as ``still_fails`` holds.

    ``case`` is taken to fail and is not tried again. Every trial is within the dims' bounds and
    meets the contract's constraints; no assignment is tried twice. ``max_trials`` bounds the calls
    of ``still_fails``, ``max_seconds`` only stops sooner. What ``still_fails`` raises comes
    through.
    """
    search = _Search(contract, case, still_fails, max_trials, time.monotonic() + max_seconds)
    dims = dict(case.dims)
    while (smaller := search.step(dims)) is not None:
        dims = smaller
    return replace(case, dims=dims)


@dataclass(slots=True)
class _Search:
    contract: Contract
    case: CaseRecord
    still_fails: Callable[[CaseRecord], bool]
    trials_left: int
    deadline: float
    _tried: set[tuple[int, ...]] = field(default_factory=set)

    def step(self, dims: Dims) -> Dims | None:
        """The first smaller assignment that fails, or None."""
        for trial in _proposals(self.contract, dims):
            if self.trials_left <= 0 or time.monotonic() >= self.deadline:
                return None
            if self._is_new(trial) and self._fails(trial):
                return trial
        return None

    def _is_new(self, trial: Dims) -> bool:
        key = tuple(trial.values())
        known = key in self._tried
        self._tried.add(key)
        return not known

    def _fails(self, trial: Dims) -> bool:
        self.trials_left -= 1
        return self.still_fails(replace(self.case, dims=trial))


def _proposals(contract: Contract, dims: Mapping[str, int]) -> Iterator[Dims]:
    """Smaller assignments that the contract allows, boldest first."""
    for trial in _all_proposals(contract, dims):
        if trial != dims and contract.allows(trial):
            yield trial


def _all_proposals(contract: Contract, dims: Mapping[str, int]) -> Iterator[Dims]:
    yield {name: size // 2 if size > 1 else size for name, size in dims.items()}
    for name in sorted(dims, key=lambda n: (-dims[n], n)):
        for size in _smaller_sizes(contract.dims[name], dims[name]):
            yield {**dims, name: size}


def _smaller_sizes(dim: Dim, size: int) -> Iterator[int]:
    """Tiny sizes, smaller candidates, then the size less a half, a quarter, ... and one unit."""
    for target in sorted({*TINY, dim.minimum, dim.multiple_of, *dim.candidates}):
        if 0 < target < size:
            yield target
    unit = dim.multiple_of
    cut = size // unit // 2
    while cut > 0:
        yield size - cut * unit
        cut //= 2
