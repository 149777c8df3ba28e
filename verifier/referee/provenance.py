"""Where the values in a kernel's launches, and in its answer, came from.

Two calls differ in one element of one floating-point input. Whatever then reaches a launch, or the
answer, differently must be that very element (moved, cast, viewed as words) or something that an
earlier launch left behind. Anything else was computed outside the kernel: by a library, by numpy,
by Python, in whatever disguise.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch

from verifier.subject import Reply, Watched

_FLOATS: Final = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_WORDS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_WIDEST: Final = max(_WORDS)

TELLING_BITS: Final = 12
"""A value that as few bits tell, as a byte, a boolean or a small number, says too little."""

Pair = tuple[torch.Tensor, torch.Tensor]
Place = tuple[int, int]
"""Where memory begins, and how many bytes it has."""


class Left:
    """Memory of one call's process as launches left it. Each byte of what one of them leaves has a
    number of its own, the same in both calls."""

    def __init__(self) -> None:
        self._memory: dict[Place, tuple[torch.Tensor, int]] = {}

    def put(self, start: int, memory: torch.Tensor, first: int) -> None:
        place = start, memory.numel()
        self._memory.pop(place, None)
        self._memory[place] = memory, first  # the latest comes last

    def numbers(self, starts: Sequence[int], memory: torch.Tensor) -> torch.Tensor:
        """For each byte that lies there (if it is known where) now the number of the one that was
        left there and is the same; 0 for others."""
        found = torch.zeros(memory.numel(), dtype=torch.int64)
        pieces = itertools.product(starts, self._memory.items())
        for start, ((begin, nbytes), (left, first)) in pieces:
            low, high = max(start, begin), min(start + memory.numel(), begin + nbytes)
            if low < high:
                same = memory[low - start : high - start] == left[low - begin : high - begin]
                places = torch.arange(first + low - begin, first + high - begin)
                found[low - start : high - start] = torch.where(same, places, 0)
        return found


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
    """What the launches so far have left behind: where it lies since, and the two values at each
    place where the calls differ.

    A value is told by its place: bytes that are where one launch, or one operation that carries,
    left them in both calls. What came by a way that nobody saw (numpy moved it, say) is known by
    its two values alone, and only if those say enough to be told from others, and are no more often
    there than they were left: whoever leaves every bit there is explains no bit by that.
    """

    def __init__(self) -> None:
        self._pairs: list[Pair] = []
        self._left: tuple[Left, Left] = (Left(), Left())
        self._next = 1
        self._keys: dict[torch.dtype, tuple[int, torch.Tensor, torch.Tensor]] = {}
        # Drawn anew each time, so that no kernel can be made to collide.
        self._factors = [secrets.randbits(63) | 1 for _ in range(2)]

    def add(self, pairs: Sequence[Pair]) -> None:
        self._pairs.extend(pairs)

    def leave(self, one: Watched, two: Watched) -> None:
        """What a launch has left behind in each of the two calls."""
        pairs = _pairs(one.after, two.after)
        self.add(pairs)
        for number, (first, second) in enumerate(pairs):
            if number < min(len(one.places), len(two.places)):
                self._left[0].put(one.places[number], _bytes(first), self._next)
                self._left[1].put(two.places[number], _bytes(second), self._next)
            self._next += first.numel() * first.element_size()

    def unchanged(self, one: Watched, two: Watched, number: int) -> torch.Tensor:
        """For each byte of the number-th memory that a launch is handed: whether it is in both
        calls the same byte of what a launch left, just where it left it."""
        first, second = (
            left.numbers(launch.places[number : number + 1], _bytes(launch.before[number]))
            for left, launch in zip(self._left, (one, two), strict=True)
        )
        return (first == second) & (first > 0)

    def has(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        """Where these two are such a pair of telling values, in any dtype that both were cast to
        since."""
        known, most = self._of(one.dtype)
        keys = self._key(one, two)
        found = torch.isin(keys, known) & (_is_telling(one) | _is_telling(two))
        if found.any():
            values, index, counts = torch.unique(keys, return_inverse=True, return_counts=True)
            left = most[torch.searchsorted(known, values).clamp(max=len(known) - 1)]
            found &= (counts <= left)[index]
        return found

    def read(self, one: torch.Tensor, two: torch.Tensor) -> bool:
        """Whether two numbers are such a pair, telling or not."""
        return bool(torch.isin(self._key(one, two), self._of(one.dtype)[0]).all())

    def _of(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """The pairs in this dtype, in order, and how often each of them was left."""
        none = torch.empty(0, dtype=torch.int64)
        count, known, most = self._keys.get(dtype, (0, none, none))
        if count < len(self._pairs):
            fresh = [none]
            for one, two in self._pairs[count:]:
                for a, b in zip(_images(one, dtype), _images(two, dtype), strict=True):
                    changed = bits(a) != bits(b)
                    fresh.append(self._key(a[changed], b[changed]))
            both = torch.cat([known, *fresh])
            weights = torch.cat([most, torch.ones(len(both) - len(known), dtype=torch.int64)])
            known, index = torch.unique(both, return_inverse=True)
            most = torch.zeros_like(known).index_add_(0, index, weights)
            self._keys[dtype] = len(self._pairs), known, most
        return known, most

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
    number = 0
    for one, two in zip(before.watched, after.watched, strict=True):
        if one.carries and two.carries:
            _carry(one, two, element, known)
            continue
        number += 1
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


def _carry(one: Watched, two: Watched, element: Element | None, known: Known) -> None:
    """What an operation that only carries was handed with good reason, it leaves so."""
    with suppress(UncomparableError):
        if not (
            _foreign_memory(one, two, element, known) or _foreign_numbers(one, two, element, known)
        ):
            known.leave(one, two)


def _pairs(one: Sequence[torch.Tensor], two: Sequence[torch.Tensor]) -> list[Pair]:
    same = len(one) == len(two) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(one, two, strict=False)
    )
    if not same:
        raise UncomparableError("the shapes that it launches with depend on the values")
    return list(zip(one, two, strict=True))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _foreign_memory(one: Watched, two: Watched, element: Element | None, known: Known) -> bool:
    """Whether some memory that a launch is handed holds what nothing explains."""
    return any(
        _foreign(pair, element, known, partial(known.unchanged, one, two, number))
        for number, pair in enumerate(_pairs(one.before, two.before))
    )


def _foreign(
    pair: Pair, element: Element | None, known: Known, unchanged: Callable[[], torch.Tensor]
) -> bool:
    """Whether the tensors differ in a place that nothing explains. ``unchanged`` says for each byte
    whether it is as a launch left it."""
    if torch.equal(*map(_bytes, pair)):
        return False
    width = element.old.element_size() if element else _WIDEST
    one, two = (_flat(tensor, width) for tensor in pair)
    changed = bits(one) != bits(two)
    changed &= ~unchanged().view(-1, one.element_size()).all(dim=1)
    one, two = one[changed], two[changed]
    left = ~_is_element(one, two, element)
    return not bool(known.has(one[left], two[left]).all())


def _is_element(one: torch.Tensor, two: torch.Tensor, element: Element | None) -> torch.Tensor:
    """Where these two are the changed element, before and after, or parts of it."""
    same = torch.zeros(one.shape, dtype=torch.bool)
    for old, new in element.likenesses(one.dtype) if element else ():
        for was, became in zip(bits(old), bits(new), strict=True):
            same |= (bits(one) == was) & (bits(two) == became)
    return same


def _is_telling(tensor: torch.Tensor) -> torch.Tensor:
    """Where a value has more bits than a small number or a byte has, before or behind its zeros."""
    words = bits(tensor).to(torch.int64)
    size = 8 * tensor.element_size()
    if size == 8:
        return torch.zeros(words.shape, dtype=torch.bool)
    small = (words >= -(1 << TELLING_BITS)) & (words < 1 << TELLING_BITS)
    round_ = words & ((1 << size - TELLING_BITS) - 1) == 0
    return ~(small | round_)


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
    old, new = torch.tensor([one], dtype=dtype), torch.tensor([two], dtype=dtype)
    if bool(_is_element(old, new, element).all()):
        return False
    if not known.read(old, new):
        return True
    if element and element.old.is_floating_point() and not bool(known.has(old, new).all()):
        raise UncomparableError("small numbers that it launches with depend on the data")
    return False


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
