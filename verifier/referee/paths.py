"""Sizes on the other sides of the branches that a kernel may take on its sizes.

A kernel may have a second code path, for tails, for short rows or for long ones, in which it is
less careful than in the first. So each gate that judges a property puts its most telling case at
sizes of other kinds, too: ragged or whole, long or short, with few rows or with many.
Which sizes, is drawn from the master seed for each gate by itself: a kernel that is honest at the
sizes that anybody can read in a contract or in this source has won nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm, prod
from typing import Final

from verifier.contract import Dim
from verifier.records import DeviceMode, GateId
from verifier.referee.bench import Bench
from verifier.referee.generator import Stream
from verifier.referee.probes import judged_dtypes

Dims = dict[str, int]

VECTOR: Final = 16
"""Sizes are whole when they are multiples of this: where compilers and kernels take wide loads."""

MOST: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 4096, DeviceMode.CUDA: 1 << 14}
"""Greatest size of a long dim: compilers take seconds for blocks beyond."""
MOST_ROWS: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 40, DeviceMode.CUDA: 4096}
"""Greatest number of rows beside short dims, in the interpreter for the time that each takes."""
FEW_ROWS: Final = 2
MOST_STEPS: Final[Mapping[DeviceMode, int]] = {
    DeviceMode.CPU_INTERPRET: 1 << 16,
    DeviceMode.CUDA: 1 << 24,
}
"""Greatest number of elements of any tensor that the reference makes: a measure of the work."""
SHORT: Final = (3, 16)
PATH: Final = "path"
"""The parameter of a case at such sizes: the name of their kind."""
TRIES: Final = 16
"""Draws for one kind, until the contract's constraints allow one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """On which side of the usual branches the sizes lie."""

    name: str
    ragged: bool
    long: bool

    @property
    def many_rows(self) -> bool:
        """Beside short sizes they are affordable, and for one kind they are enough."""
        return self.ragged and not self.long


WHOLE_AND_SHORT: Final = Kind("whole and short", ragged=False, long=False)
KINDS: Final = (
    Kind("ragged and long", ragged=True, long=True),
    Kind("ragged and short", ragged=True, long=False),
    Kind("whole and long", ragged=False, long=True),
    WHOLE_AND_SHORT,
)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Sizes of another kind than the usual ones, what to call them, and dtypes to try there: the
    usual ones first, then drawn ones."""

    name: str
    dims: Dims
    dtypes: dict[str, str]


def other_paths(bench: Bench, gate: GateId, along: str = "", least: int = 0) -> list[Elsewhere]:
    """Drawn sizes for one gate, one of each kind that the contract and the budget have room for;
    none where the contract fixes the shape.

    ``along`` names the dim that is long (by default drawn), which then is ``least`` even when it is
    short.
    """
    if bench.contract.behaviour.fixed_shape or not bench.contract.dims:
        return []
    stream = Stream(bench.seed, "other paths", gate.value, along)
    dtypes = judged_dtypes(bench)
    dims = _long_dims(bench, along, stream)
    found: list[Elsewhere] = []
    for place, kind in enumerate(KINDS):
        draw = _Draw(bench, kind, dims[place % len(dims)], least, stream)
        sizes = draw.sizes()
        taken = dtypes[_between(stream, 0, len(dtypes) - 1) if place else 0]
        if sizes is not None and all(sizes != one.dims for one in found):
            found.append(Elsewhere(kind.name, sizes, taken))
    return found


def _long_dims(bench: Bench, along: str, stream: Stream) -> list[str]:
    """The dims that may be long, in drawn order: those that are no rows and have room."""
    if along:
        return [along]
    dims = bench.contract.dims
    others = [name for name in dims if name not in _rows(bench)]
    roomy = [name for name in others if dims[name].maximum > 2 * dims[name].usual] or others
    return [roomy[place] for place in stream.permutation(len(roomy))]


def _rows(bench: Bench) -> tuple[str, ...]:
    """Dims of rows that are worked on one by one, where an op has others beside them."""
    independent = bench.contract.behaviour.independent
    return independent if set(bench.contract.dims) - set(independent) else ()


def listed_dims(bench: Bench, stream: Stream, most: int) -> list[Dims]:
    """Sizes that the contract names, in drawn order, each size of each dim once if ``most``
    assignments hold them: what is left to ask of a kernel that refuses all others."""
    orders: dict[str, list[int]] = {}
    for name, dim in bench.contract.dims.items():
        few = [size for size in dim.candidates if size > 0]
        sizes = [size for size in few if size > 1] if name in _rows(bench) else few
        sizes = sizes or few or [dim.usual]
        orders[name] = [sizes[place] for place in stream.permutation(len(sizes))]
    count = min(most, max(len(sizes) for sizes in orders.values()))
    trials = ({n: sizes[i % len(sizes)] for n, sizes in orders.items()} for i in range(count))
    return [dims for dims in trials if _is_small(bench, dims)]


def _is_small(bench: Bench, dims: Dims) -> bool:
    rows = prod(dims[name] for name in _rows(bench))
    fits = rows <= MOST_ROWS[bench.mode] and bench.elements(dims) <= bench.budget
    return fits and bench.contract.allows(dims)


@dataclass(frozen=True, slots=True)
class _Draw:
    """Sizes of one kind."""

    bench: Bench
    kind: Kind
    long: str
    least: int
    stream: Stream

    def sizes(self) -> Dims | None:
        """The first draw that the contract allows and that is affordable; None without any."""
        allows = self.bench.contract.allows
        for _ in range(TRIES):
            trial = self._rest()
            size = self._long_size(trial) if self.kind.long else self._short_size(trial)
            trial[self.long] = size
            if allows(trial) and self._affordable(trial):
                return trial
            alone = {**self.bench.small_dims(rows=FEW_ROWS), self.long: size}
            if allows(alone) and self._affordable(alone):
                return alone
        return None

    def _rest(self) -> Dims:
        """All dims but the long one: few rows or, beside short dims, many; all others short."""
        dims = self.bench.contract.dims
        drawn = {name: self._small(dim) for name, dim in dims.items() if name != self.long}
        rows = [name for name in _rows(self.bench) if name != self.long]
        left = MOST_ROWS[self.bench.mode] if self.kind.many_rows else FEW_ROWS
        for place in self.stream.permutation(len(rows)):
            dim = dims[rows[place]]
            most = min(max(left, 2, dim.minimum), dim.maximum)  # two: one has no layout
            size = _logarithmic(self.stream, min(max(2, dim.minimum), most), most)
            drawn[rows[place]] = _multiple(dim, size)
            left //= max(size, 1)
        return drawn

    def _small(self, dim: Dim) -> int:
        low, high = max(SHORT[0], dim.minimum), min(SHORT[1] - 1, dim.maximum)
        if low > high:
            return _multiple(dim, max(dim.minimum, min(dim.candidates)))
        return self._shaped(dim, _between(self.stream, low, high))

    def _shaped(self, dim: Dim, size: int) -> int:
        """The size, ragged or whole as this kind wants it and as far as the dim has such sizes."""
        if self.kind.ragged:
            count = max(size // dim.multiple_of, 1)
            ragged = (count - 1 + count % 2) * dim.multiple_of
            return ragged if dim.allows(ragged) and ragged else _multiple(dim, size)
        step = lcm(VECTOR, dim.multiple_of)
        whole = max(size // step, 1) * step
        return whole if dim.allows(whole) else _multiple(dim, size)

    def _short_size(self, rest: Mapping[str, int]) -> int:
        """Up to the greatest tile or the usual size, of any magnitude."""
        dim = self.bench.contract.dims[self.long]
        low = max(SHORT[0] if self.kind.ragged else VECTOR, self.least, dim.minimum)
        high = self._edge(dim, max(self._most(rest), dim.minimum, 1)) - 1
        return self._shaped(dim, _logarithmic(self.stream, low, high))

    def _long_size(self, rest: Mapping[str, int]) -> int:
        """Beyond the greatest tile and the usual size: of any magnitude or, now and then for whole
        sizes, near the end of what is affordable, or a power of two."""
        dim = self.bench.contract.dims[self.long]
        most = max(self._most(rest), dim.minimum, 1)
        edge = self._edge(dim, most)
        if self.kind.ragged or _between(self.stream, 0, 1):
            size = self._shaped(dim, _logarithmic(self.stream, edge + 1, most))
        else:
            size = self._shaped(dim, _between(self.stream, (edge + most) // 2 + 1, most))
        power, lower = 1 << (size.bit_length() - 1), size - lcm(VECTOR, dim.multiple_of)
        wanted = _between(self.stream, 0, 3) == 0
        if self.kind.ragged or (size == power) is wanted:
            return size
        other = power if wanted else lower
        return other if other > edge and dim.allows(other) else size

    def _edge(self, dim: Dim, most: int) -> int:
        """The greatest size that still counts as short, and leaves room for longer ones."""
        sizes = (*self.bench.constants, dim.usual, self.least, SHORT[1])
        return max((size for size in sizes if 2 * size < most), default=most // 2)

    def _most(self, rest: Mapping[str, int]) -> int:
        dim = self.bench.contract.dims[self.long]
        size = min(dim.maximum, MOST[self.bench.mode])
        while size > dim.minimum and not self._affordable({**rest, self.long: size}):
            size = size * 3 // 4
        return size

    def _affordable(self, dims: Mapping[str, int]) -> bool:
        # Where no dim is independent, each may start programs of much work.
        share = 2 if self.bench.contract.behaviour.independent else 8
        if self.bench.elements(dims) > self.bench.budget // share:
            return False
        steps = self.bench.reference_elements(dims)
        return steps is None or steps <= MOST_STEPS[self.bench.mode]


def _multiple(dim: Dim, size: int) -> int:
    """The nearest size below that the dim's unit allows, or the least above nothing."""
    return max(size // dim.multiple_of, 1) * dim.multiple_of


def _between(stream: Stream, low: int, high: int) -> int:
    """Uniform, both ends included."""
    return int(stream.integers(low, max(low, high) + 1, 1)[0])


def _logarithmic(stream: Stream, low: int, high: int) -> int:
    """Each magnitude as likely as the others, both ends included; integers alone, so that it is the
    same on every machine."""
    bits = _between(stream, low.bit_length(), max(low, high).bit_length())
    return _between(stream, max(low, 1 << (bits - 1)), min(max(low, high), (1 << bits) - 1))
