"""Where the values in a kernel's launches, and in its answer, came from.

Two calls differ in one element of one floating-point input. Whatever then reaches a launch, or the
answer, differently must be that very element (moved, cast, viewed as words) or something that an
earlier launch left behind. Anything else was computed outside the kernel: by a library, by numpy,
by Python, in whatever disguise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from verifier.subject import Reply, Watched

_FLOATS: Final = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_WORDS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_WIDEST: Final = max(_WORDS)

Pair = tuple[torch.Tensor, torch.Tensor]


class UncomparableError(Exception):
    """The two calls did not go the same way, so their launches cannot be laid side by side."""


@dataclass(frozen=True, slots=True)
class Element:
    """The element in which the two calls differ, as it was and as it became (one element each)."""

    old: torch.Tensor
    new: torch.Tensor

    def casts(self, dtype: torch.dtype) -> Iterator[Pair]:
        """It in another floating dtype, also by way of a third one."""
        for middle in (self.old.dtype, *_FLOATS):
            yield self.old.to(middle).to(dtype), self.new.to(middle).to(dtype)

    def words(self, dtype: torch.dtype) -> Iterator[Pair]:
        """The integer words that it, or a cast of it, is made of."""
        for kind in (self.old.dtype, *_FLOATS):
            if kind.itemsize >= dtype.itemsize:
                yield from zip(
                    _words(self.old, kind, dtype), _words(self.new, kind, dtype), strict=True
                )


@dataclass(slots=True)
class _Known:
    """What the launches so far have left behind, by the dtype in which somebody asked for it."""

    tensors: list[torch.Tensor] = field(default_factory=list)
    _patterns: dict[torch.dtype, torch.Tensor] = field(default_factory=dict)
    _absorbed: dict[torch.dtype, int] = field(default_factory=dict)

    def has(self, values: torch.Tensor) -> torch.Tensor:
        """Which of these values are among them, in any dtype that they were cast to since."""
        wanted = bits(values)
        return torch.isin(wanted, self._of(values.dtype, like=wanted))

    def _of(self, dtype: torch.dtype, like: torch.Tensor) -> torch.Tensor:
        known = self._patterns.get(dtype, like[:0])
        fresh = self.tensors[self._absorbed.get(dtype, 0) :]
        images = [bits(image) for tensor in fresh for image in _images(tensor, dtype)]
        if images:
            known = torch.unique(torch.cat([known, *images]))
        self._patterns[dtype], self._absorbed[dtype] = known, len(self.tensors)
        return known


def foreign_values(
    before: Reply, after: Reply, element: Element | None, *, integers: bool
) -> str | None:
    """What one of these two calls computed outside its launches, in words; None if nothing.

    ``before`` was called with ``element.old`` and ``after`` with ``element.new``, or both with the
    same data. Without
    ``integers``, tensors of integers are left out after the first launch: where the op permits it,
    torch may make offsets of what a kernel counted. Raises UncomparableError.
    """
    if len(before.watched) != len(after.watched):
        raise UncomparableError("how often it launches depends on the values")
    old, new = _Known(), _Known()
    for number, (one, two) in enumerate(zip(before.watched, after.watched, strict=True)):
        where = f"launch {number + 1}"
        strict = integers or number == 0
        for place, pair in enumerate(_pairs(one.before, two.before)):
            if _foreign(pair, element, (old, new), integers=strict):
                return f"{where} is handed values in tensor {place} that no launch computed"
        if _foreign_numbers(one, two, element, (old, new)):
            return f"{where} is handed a number that depends on the data"
        old.tensors.extend(one.after)
        new.tensors.extend(two.after)
    for place, pair in enumerate(_pairs(before.outputs, after.outputs)):
        if _foreign(pair, element, (old, new), integers=integers):
            return f"output {place} holds values that no launch left behind"
    return None


def _pairs(one: Sequence[torch.Tensor], two: Sequence[torch.Tensor]) -> list[Pair]:
    same = len(one) == len(two) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(one, two, strict=False)
    )
    if not same:
        raise UncomparableError("the shapes that it launches with depend on the values")
    return list(zip(one, two, strict=True))


def _foreign(
    pair: Pair, element: Element | None, known: tuple[_Known, _Known], *, integers: bool
) -> bool:
    """Whether the tensors differ in a place that nothing explains."""
    width = element.old.element_size() if element else _WIDEST
    one, two = (_flat(tensor, width) for tensor in pair)
    if not integers and not one.is_floating_point():
        return False
    changed = bits(one) != bits(two)
    if not changed.any():
        return False
    one, two = one[changed], two[changed]
    explained = known[0].has(one) & known[1].has(two)
    for old, new in _likenesses(element, one.dtype):
        explained |= (bits(one) == bits(old)) & (bits(two) == bits(new))
    return not bool(explained.all())


def _likenesses(element: Element | None, dtype: torch.dtype) -> Iterator[Pair]:
    if element is None:
        return iter(())
    return element.casts(dtype) if dtype.is_floating_point else element.words(dtype)


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


def _foreign_numbers(
    one: Watched, two: Watched, element: Element | None, known: tuple[_Known, _Known]
) -> bool:
    """Whether a plain number among the arguments depends on the data and is not just read from
    it."""
    if len(one.numbers) != len(two.numbers):
        raise UncomparableError("the numbers that it launches with depend on the values")
    pair = _numbers(one), _numbers(two)
    return _foreign(pair, element, known, integers=True)


def _numbers(launch: Watched) -> torch.Tensor:
    return torch.tensor(launch.numbers, dtype=torch.float64)


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
        return
    yield tensor.to(torch.int64).view(dtype)
    if tensor.element_size() >= dtype.itemsize:
        yield tensor.view(dtype)


def _words(element: torch.Tensor, kind: torch.dtype, dtype: torch.dtype) -> list[torch.Tensor]:
    return list(element.reshape(-1).to(kind).view(dtype).reshape(-1, 1))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bit pattern of each element as an integer, so that NaN equals itself and -0.0 is not
    0.0."""
    return tensor.reshape(-1).view(_WORDS[tensor.element_size()])
