"""Where the values in a kernel's launches, and in its answer, came from.

Two calls differ in one element of one floating-point input. Whatever then reaches a launch, or the
answer, differently must be that very element (moved, cast, viewed as words) or something that an
earlier launch left behind. Anything else was computed outside the kernel: by a library, by numpy,
by Python, in whatever disguise.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from verifier.subject import Reply, Watched

_FLOATS: Final = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_WORDS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_WIDEST: Final = max(_WORDS)

MAX_BYTE_PAIRS: Final = 4096
"""Of the 65,536 pairs of bytes: whoever leaves more of them behind explains nothing by that."""

Pair = tuple[torch.Tensor, torch.Tensor]
Place = tuple[int, int]
"""Where memory begins, and how many bytes it has."""


class UncomparableError(Exception):
    """The two calls did not go the same way, so their launches cannot be laid side by side."""


@dataclass(frozen=True, slots=True)
class Element:
    """The element in which the two calls differ, as it was and as it became (one element each)."""

    old: torch.Tensor
    new: torch.Tensor

    def likenesses(self, dtype: torch.dtype) -> Iterator[Pair]:
        """It in this dtype: cast, also by way of a third one, or as the words that it is made
        of."""
        for kind in dict.fromkeys((self.old.dtype, *_FLOATS)):
            old, new = self.old.reshape(1).to(kind), self.new.reshape(1).to(kind)
            yield old.to(dtype), new.to(dtype)
            if not dtype.is_floating_point and kind.itemsize >= dtype.itemsize:
                yield old.view(dtype), new.view(dtype)


class Known:
    """What the launches so far have left behind: the two values at each place where the calls
    differ, and what lies where since. One launch that leaves every number there is explains nothing
    by that."""

    def __init__(self) -> None:
        self._pairs: list[Pair] = []
        self._left: tuple[dict[Place, torch.Tensor], ...] = ({}, {})
        self._keys: dict[torch.dtype, tuple[int, torch.Tensor]] = {}
        # Drawn anew each time, so that no kernel can be made to collide.
        self._factors = [secrets.randbits(63) | 1 for _ in range(2)]

    def add(self, pairs: Sequence[Pair]) -> None:
        self._pairs.extend(pairs)

    def leave(self, one: Watched, two: Watched) -> None:
        """What a launch has left behind in each of the two calls."""
        self.add(_pairs(one.after, two.after))
        for left, launch in zip(self._left, (one, two), strict=True):
            placed = zip(launch.places, launch.after, strict=False)
            left.update((_place(start, tensor), _bytes(tensor)) for start, tensor in placed)

    def unchanged(self, one: Watched, two: Watched, number: int) -> torch.Tensor:
        """For each byte of the number-th memory that a launch is handed: whether it holds in both
        calls what a launch left just there."""
        first, second = (
            _since(left, launch, number)
            for left, launch in zip(self._left, (one, two), strict=True)
        )
        return first & second

    def has(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        """Where these two are such a pair, in any dtype that both were cast to since."""
        known = self._of(one.dtype)
        if one.element_size() == 1 and len(known) > MAX_BYTE_PAIRS:
            return torch.zeros(one.shape, dtype=torch.bool)
        return torch.isin(self._key(one, two), known)

    def _of(self, dtype: torch.dtype) -> torch.Tensor:
        count, known = self._keys.get(dtype, (0, torch.empty(0, dtype=torch.int64)))
        found = [known]
        for one, two in self._pairs[count:]:
            for a, b in zip(_images(one, dtype), _images(two, dtype), strict=True):
                changed = bits(a) != bits(b)
                found.append(self._key(a[changed], b[changed]))
        distinct: torch.Tensor = torch.unique(torch.cat(found))
        self._keys[dtype] = len(self._pairs), distinct
        return distinct

    def _key(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        """One number for both: equal pairs have equal ones, others with luck of 2**-63 only."""
        left, right = (bits(tensor).to(torch.int64) for tensor in (one, two))
        one_way, other_way = (torch.tensor(factor) for factor in self._factors)
        return torch.add(left * one_way, right * other_way)


def foreign_values(
    before: Reply, after: Reply, element: Element | None, known: Known
) -> str | None:
    """What one of these two calls computed outside its launches, in words; None if nothing.

    ``before`` was called with ``element.old`` and ``after`` with ``element.new``, or both with the
    same data. ``known`` is what earlier calls left behind, and learns what these do. Raises
    UncomparableError.
    """
    if len(before.watched) != len(after.watched):
        raise UncomparableError("how often it launches depends on the values")
    for number, (one, two) in enumerate(zip(before.watched, after.watched, strict=True), start=1):
        if _foreign_memory(one, two, element, known):
            return f"launch {number} is handed values that no launch computed"
        if _foreign_numbers(one, two, element, known):
            return f"what launch {number} is depends on the data, in a number, a grid or a name"
        known.leave(one, two)
    if before.final is None or after.final is None:
        raise UncomparableError("what it returns cannot be seen through")
    if _foreign_memory(before.final, after.final, element, known):
        return "an output holds values that no launch left behind"
    if element:  # a later call may still keep it
        known.add([(element.old.reshape(1), element.new.reshape(1))])
    return None


def _pairs(one: Sequence[torch.Tensor], two: Sequence[torch.Tensor]) -> list[Pair]:
    same = len(one) == len(two) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(one, two, strict=False)
    )
    if not same:
        raise UncomparableError("the shapes that it launches with depend on the values")
    return list(zip(one, two, strict=True))


def _since(left: dict[Place, torch.Tensor], launch: Watched, number: int) -> torch.Tensor:
    now = _bytes(launch.before[number])
    before = None
    if number < len(launch.places):
        before = left.get(_place(launch.places[number], launch.before[number]))
    return torch.zeros_like(now, dtype=torch.bool) if before is None else now == before


def _place(start: int, tensor: torch.Tensor) -> Place:
    return start, tensor.numel() * tensor.element_size()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _foreign_memory(one: Watched, two: Watched, element: Element | None, known: Known) -> bool:
    """Whether some memory that a launch is handed holds what nothing explains."""
    return any(
        _foreign(pair, element, known, known.unchanged(one, two, number))
        for number, pair in enumerate(_pairs(one.before, two.before))
    )


def _foreign(
    pair: Pair, element: Element | None, known: Known, unchanged: torch.Tensor | None = None
) -> bool:
    """Whether the tensors differ in a place that nothing explains. ``unchanged`` says for each byte
    whether it is as a launch left it."""
    width = element.old.element_size() if element else _WIDEST
    one, two = (_flat(tensor, width) for tensor in pair)
    changed = bits(one) != bits(two)
    if unchanged is not None:
        changed &= ~unchanged.view(-1, one.element_size()).all(dim=1)
    if not changed.any():
        return False
    one, two = one[changed], two[changed]
    explained = known.has(one, two)
    for old, new in element.likenesses(one.dtype) if element else ():
        places = zip(bits(old), bits(new), strict=True)
        for was, became in places:
            explained |= (bits(one) == was) & (bits(two) == became)
    return not bool(explained.all())


def _flat(tensor: torch.Tensor, itemsize: int) -> torch.Tensor:
    """In one dim; complex numbers as their parts, and integers as words no wider than the input's
    elements, for a wide one may hold several of those."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.reshape(-1)
    if flat.dtype is torch.bool:
        return flat.view(torch.uint8)
    if flat.is_floating_point() or flat.element_size() <= itemsize:
        return flat
    return flat.view(_WORDS[itemsize])


def _foreign_numbers(one: Watched, two: Watched, element: Element | None, known: Known) -> bool:
    """Whether a plain number, a grid or a name depends on the data and was not just read from
    it."""
    if len(one.numbers) != len(two.numbers):
        raise UncomparableError("the numbers that it launches with depend on the values")
    changed = [(a, b) for a, b in zip(one.numbers, two.numbers, strict=True) if _differ(a, b)]
    return any(_foreign_number(a, b, element, known) for a, b in changed)


def _differ(one: float, two: float) -> bool:
    return type(one) is not type(two) or (one != two and not (one != one and two != two))


def _foreign_number(one: float, two: float, element: Element | None, known: Known) -> bool:
    whole = isinstance(one, int) and isinstance(two, int)
    if whole and max(abs(one), abs(two)) >= 1 << 63:
        return True
    dtype = torch.int64 if whole else torch.float64
    return _foreign(
        (torch.tensor([one], dtype=dtype), torch.tensor([two], dtype=dtype)), element, known
    )


def _images(tensor: torch.Tensor, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """A tensor's values in another dtype, however they got there, and its bytes as its words."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    tensor = tensor.reshape(-1)
    if tensor.dtype is torch.bool:
        tensor = tensor.view(torch.uint8)
    yield tensor.to(dtype)
    if dtype.is_floating_point:
        yield from (tensor.to(middle).to(dtype) for middle in _FLOATS)
    else:
        yield tensor.to(torch.int64).view(dtype)
    if tensor.numel() * tensor.element_size() % dtype.itemsize == 0:
        yield tensor.view(dtype)
    if tensor.dtype is torch.uint8:  # memory that was found by its address: of whatever dtype
        kinds = [kind for kind in _FLOATS if tensor.numel() % kind.itemsize == 0]
        yield from (tensor.view(kind).to(dtype) for kind in kinds)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bit pattern of each element as an integer, so that NaN equals itself and -0.0 is not
    0.0."""
    return tensor.reshape(-1).view(_WORDS[tensor.element_size()])
