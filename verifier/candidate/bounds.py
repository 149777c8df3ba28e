"""In the host, in Triton's interpreter: every access of a launch held against the memory there is.

Cheap, for it is done in all calls: the least and the greatest address of an access are looked up,
and only what does not lie in one piece of known memory is looked at address by address.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import numpy as np
import torch

Range = tuple[int, int]
Find = Callable[[int], Range | None]
"""The own memory of a tensor around an address; None if it is nobody's."""

MAX_TEXTS: Final = 8
_MAX_LOOKUPS: Final = 64
_MAX_DEPTH: Final = 3
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


@dataclass(slots=True)
class Bounds:
    """The memory that tensors own while one launch runs, and what was reached beyond it."""

    name: str
    """The kernel's."""
    find: Find
    """Asked for what is not in ``spans``; slow."""
    spans: list[tuple[Range, str]]
    """Memory known beforehand, each with what to call it."""
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sort()

    def _sort(self) -> None:
        ordered = sorted(span for span, _ in self.spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))  # some lie in others

    def beyond(self, addresses: Any, mask: Any, nbytes: int) -> int | None:
        """The first of these accesses, of so many bytes each, that lies in no tensor's memory."""
        places = np.asarray(addresses)
        if mask is not True and not np.asarray(mask).all():
            where, everywhere = np.broadcast_arrays(mask, places)
            places = everywhere[where.astype(bool)]
        if not places.size:
            return None
        low, high = int(places.min()), int(places.max())
        if self._holds(low, high + nbytes):
            return None
        return next(self._outside(np.unique(places).astype(np.uint64), nbytes), None)

    def _holds(self, start: int, end: int) -> bool:
        place = bisect_right(self._starts, start) - 1
        return place >= 0 and end <= self._ends[place]

    def _outside(self, places: np.ndarray[Any, Any], nbytes: int) -> Iterator[int]:
        for _ in range(_MAX_LOOKUPS):
            left = self._unknown(places, nbytes)
            if not left.size:
                return
            address = int(left[0])
            own = self.find(address)
            if own is None or address + nbytes > own[1]:
                yield address
                return
            self.spans.append((own, "a tensor"))
            self._sort()
        return  # so many pieces of memory in one access that nothing can be said

    def _unknown(self, places: np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
        starts = np.array(self._starts or [0], dtype=np.uint64)
        ends = np.array(self._ends or [0], dtype=np.uint64)
        last = np.searchsorted(starts, places, side="right") - 1
        inside = (last >= 0) & (places + np.uint64(nbytes) <= ends[np.maximum(last, 0)])
        return places[~inside]

    def describe(self, verb: str, address: int, nbytes: int) -> str:
        """Which kernel did what, and how far from the memory that is nearest."""
        if not self.spans:
            return f"{self.name} {verb} memory that is no tensor's"
        distances = [(*_distance(span, address), what) for span, what in self.spans]
        off, side, what = min(distances, key=lambda one: one[0])
        return f"{self.name} {verb} {nbytes} bytes {off} {side} {what}"


def _distance(span: Range, address: int) -> tuple[int, str]:
    start, end = span
    if address < start:
        return start - address, "before the start of"
    return max(address - end, 0), "past the end of"


def storages(values: Iterable[Any], depth: int = _MAX_DEPTH) -> Iterator[Range]:
    """The storages behind the tensors among a launch's arguments, as far as they are plain to
    see; whatever is hidden deeper is found when it is reached."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if type(value) in _PLAIN and value.layout is torch.strided:
                storage = value.untyped_storage()
                yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        elif isinstance(value, tuple | list) and depth:
            yield from storages(value, depth - 1)
        elif depth and hasattr(value, "base"):
            yield from storages((value.base,), depth - 1)
