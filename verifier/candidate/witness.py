"""In the host: what the kernel's launches were handed, and what they left behind.

Kept for calls with ``watch`` alone, whose data are small. The referee compares two such calls: see
``verifier.referee.provenance``. What cannot be seen through is said to be unseen, never skipped.
"""

from __future__ import annotations

import bisect
import ctypes
import dataclasses
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeGuard

import numpy as np
import torch

from verifier.candidate.dtypes import NAMES
from verifier.candidate.identity import identity

MAX_LAUNCHES: Final = 2048
MAX_NBYTES: Final = 128 << 20
MAX_TENSORS: Final = 64
MAX_NUMBERS: Final = 4096
MAX_CARRIES: Final = 512
_MAX_DEPTH: Final = 8
LOWEST_ADDRESS: Final = 1 << 32
"""Smaller numbers are taken for numbers."""

Range = tuple[int, int]
Number = int | float
Find = Callable[[int], Range | None]
"""The memory of a known tensor around an address; None if it is nobody's."""

_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


_TRITON: Final[set[str]] = set()
"""Triton's modules, as they were before any kernel was loaded."""


def triton_remember() -> None:
    """Before a kernel is loaded."""
    _TRITON.update(name for name in sys.modules if name.partition(".")[0] == "triton")


class _UnseenError(Exception):
    """An argument that cannot be seen through."""


@dataclass(slots=True)
class Launch:
    """Copies of the memory behind its tensors before and after it, where that memory begins, and
    everything else about it as numbers (texts as their hashes)."""

    before: tuple[torch.Tensor, ...]
    places: tuple[int, ...]
    after: tuple[torch.Tensor, ...] = ()
    numbers: tuple[Number, ...] = ()
    strays: int = 0
    """How often it is handed, or reaches, memory that is no tensor's."""
    carries: bool = False
    """No launch, but an operation of torch's that moves or casts."""


@dataclass(slots=True)
class Witness:
    """Copies what every launch of one call sees. ``full`` says that something was not seen."""

    exact: bool = False
    """Each access of a launch is told to ``accessed``, so that no address needs to be guessed."""
    launches: list[Launch] = field(default_factory=list)
    final: Launch | None = None
    """The memory behind what the call returned, like that of a launch which changes nothing."""
    full: bool = False
    _nbytes: int = 0
    _contents: dict[tuple[bytes, torch.dtype], torch.Tensor] = field(default_factory=dict)
    _open: tuple[list[torch.Tensor], Find] | None = None
    _reachable: Reachable | None = None
    _carries: int = 0

    def carry(self, what: str, arguments: Any, find: Find) -> list[torch.Tensor] | None:
        """Like ``arrive``, of an operation that only moves or casts: what it is handed accuses
        nobody, and where it cannot be seen through, nothing is known of what it leaves."""
        was_full, self._carries = self.full, self._carries + 1
        if self._carries > MAX_CARRIES:
            return None
        memory = self.arrive(what, arguments, find)
        self.full = was_full
        if memory is not None:
            self.launches[-1].carries, self.launches[-1].strays = True, 0
        return memory

    def arrive(self, what: str, arguments: Any, find: Find) -> list[torch.Tensor] | None:
        """A launch is about to happen; the memory that it can reach, for ``leave``."""
        self._open = None
        try:
            leaves = list(_leaves(arguments, _MAX_DEPTH))
        except _UnseenError:
            self.full = True
            return None
        given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        numbers = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        memory, shapes = _reached(given, find)
        numbers, unknown, pointed = _addresses(numbers, memory, find)
        memory += pointed
        known = (_hash(what), *shapes, *numbers)
        few = len(self.launches) < MAX_LAUNCHES and len(memory) <= MAX_TENSORS
        before = self._copies(memory, find) if few and len(known) <= MAX_NUMBERS else None
        if before is None:
            self.full = True
            return None
        strays = 0 if self.exact else _strays(unknown)
        self.launches.append(Launch(before, _places(memory), numbers=known, strays=strays))
        self._open = memory, find
        self._reachable = Reachable.of(memory)
        return memory

    def returned(self, outputs: Sequence[torch.Tensor], find: Find) -> None:
        """The call has ended with these."""
        if self.arrive("return", list(outputs), find) is not None:
            self.final = self.launches.pop()
        self._open = None

    def accessed(self, addresses: Any, mask: Any) -> None:
        """The launch in progress reads or writes there, where the mask lets it."""
        if self._open is None or self._reachable is None:
            return
        where, places = np.broadcast_arrays(mask, addresses)
        outside = self._reachable.outside(places[where.astype(bool)])
        while outside and self._open is not None:
            self._led(outside[0], *self._open)
            outside = self._reachable.outside(np.array(outside[1:], dtype=np.uint64))

    def _led(self, address: int, memory: list[torch.Tensor], find: Find) -> None:
        """To memory that it was not seen to be handed: if that is a tensor's, it is followed from
        now on, and holds what it held before the launch, which has not been there yet."""
        own = find(address)
        if own is None:
            self.launches[-1].strays += 1
            return
        led = _bytes_at(own, memory)
        before = self._copies([led], find) if len(memory) < MAX_TENSORS else None
        if before is None:
            self.full, self._open = True, None
            return
        memory.append(led)
        last = self.launches[-1]
        last.before, last.places = (*last.before, *before), _places(memory)
        self._reachable = Reachable.of(memory)

    def leave(self, memory: Sequence[torch.Tensor] | None, grid: Sequence[int] = ()) -> None:
        """The launch whose memory this is has ended."""
        if memory is None or self._open is None:
            return
        find, self._open = self._open[1], None
        last = self.launches[-1]
        after = self._copies(memory, find)
        if after is None:
            self.full |= not last.carries
            return
        last.after, last.places = after, _places(memory)
        last.numbers = (*last.numbers, *grid)

    def _copies(
        self, tensors: Sequence[torch.Tensor], find: Find
    ) -> tuple[torch.Tensor, ...] | None:
        """What is there at this moment, on the CPU, dense; the same contents are kept once. None
        for more than can be kept. Addresses in tables are told as places in their tensors."""
        kept = []
        for tensor in tensors:
            plain = tensor.detach().cpu().contiguous()
            raw = plain.reshape(-1).view(torch.uint8)
            key = hashlib.blake2b(raw.numpy().data, digest_size=16).digest(), plain.dtype
            if key not in self._contents:
                self._nbytes += raw.numel()
                if self._nbytes > MAX_NBYTES:
                    return None
                self._contents[key] = _told(plain.clone(), find)
            kept.append(self._contents[key])
        return tuple(kept)


def _places(memory: Iterable[torch.Tensor]) -> tuple[int, ...]:
    return tuple(tensor.data_ptr() for tensor in memory)


@dataclass(frozen=True, slots=True)
class Reachable:
    """The memory that a launch was seen to reach."""

    starts: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]

    @classmethod
    def of(cls, memory: Iterable[torch.Tensor]) -> Reachable:
        spans = sorted((t.data_ptr(), t.data_ptr() + t.numel() * t.itemsize) for t in memory)
        bounds = np.array(spans or [(0, 0)], dtype=np.uint64)
        # The same memory may be there in several dtypes, and one part of it in another.
        return cls(bounds[:, 0], np.maximum.accumulate(bounds[:, 1]))

    def outside(self, addresses: np.ndarray[Any, Any]) -> list[int]:
        """Those that do not lie in there, each once."""
        places = np.unique(addresses.astype(np.uint64))
        last = np.searchsorted(self.starts, places, side="right") - 1
        inside = (last >= 0) & (places < self.ends[np.maximum(last, 0)])
        found: list[int] = places[~inside].tolist()
        return found


def _leaves(value: Any, depth: int) -> Iterator[torch.Tensor | Number]:
    """The tensors and numbers in an argument; descriptors and wrappers are seen through."""
    if depth == 0:
        raise _UnseenError
    if isinstance(value, torch.Tensor):
        if (
            type(value) not in _PLAIN
            or value.dtype not in NAMES
            or value.layout is not torch.strided
        ):
            raise _UnseenError
        yield value
    elif isinstance(value, Real):
        yield int(value) if isinstance(value, Integral) else float(value)
    elif _is_name(value):
        yield _hash(str(value))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item, depth - 1)
    elif isinstance(value, Mapping):
        yield from _leaves([*value.keys(), *value.values()], depth - 1)
    elif _is_tritons(type(value)):
        yield from _leaves(_fields(value), depth - 1)
    elif isinstance(value, FunctionType):
        yield _hash(identity(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (one.name for one in dataclasses.fields(value))
        yield from _leaves([getattr(value, name) for name in names], depth - 1)
    else:
        raise _UnseenError


def _is_name(value: Any) -> bool:
    """Something that stands for itself and holds no data of its own."""
    return value is None or isinstance(
        value, str | Enum | torch.dtype | torch.device | torch.layout | torch.memory_format
    )


def _is_tritons(kind: type) -> bool:
    """Triton's own wrappers: descriptors, constexpr, dtypes, functions, reinterpreted tensors. A
    type that only says so of itself is none: Triton's modules must know it by its name."""
    module = sys.modules.get(kind.__module__) if kind.__module__ in _TRITON else None
    return getattr(module, kind.__name__, None) is kind


def is_from_triton(function: Any) -> bool:
    """Whether Triton's modules know this very function by its name."""
    name = getattr(function, "__name__", "")
    place = getattr(getattr(function, "fn", function), "__module__", "")
    module = sys.modules.get(place) if place in _TRITON else None
    return module is not None and getattr(module, name, None) is function


def _fields(value: Any) -> list[Any]:
    """What a wrapper of Triton's holds; a kernel or a dtype is as good as its name."""
    if getattr(value, "fn", None) is not None:
        return [identity(value)]
    if type(value).__name__ in ("dtype", "constexpr_type"):
        return [str(value)]
    if not hasattr(value, "__dict__"):
        raise _UnseenError
    return list(vars(value).values())


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:6], "big")


def _reached(given: Sequence[torch.Tensor], find: Find) -> tuple[list[torch.Tensor], list[int]]:
    """All memory that pointers to these tensors reach, once each, and how the tensors lie in it."""
    memory: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    shapes: list[int] = []
    for tensor in given:
        storage = tensor.untyped_storage()
        own = _part(find(tensor.data_ptr()), _span(storage))
        memory.setdefault((own[0], tensor.dtype), _view(storage, own, tensor.dtype))
        shapes += [tensor.data_ptr() - own[0] if tensor.numel() else 0]
        shapes += [*tensor.shape, *tensor.stride()]
    return list(memory.values()), shapes


def _part(own: Range | None, whole: Range) -> Range:
    """The memory that was found, if it lies within this storage; else all of the storage."""
    return own if own and whole[0] <= own[0] <= own[1] <= whole[1] else whole


def _view(storage: torch.UntypedStorage, own: Range, dtype: torch.dtype) -> torch.Tensor:
    """The part of a storage that is an allocation's own, as elements of this dtype."""
    size = dtype.itemsize
    start = (own[0] - storage.data_ptr()) // size if storage.nbytes() else 0
    count = (own[1] - own[0]) // size if storage.nbytes() else 0
    blank = torch.empty(0, dtype=dtype, device=storage.device)
    return blank.set_(storage, start, (count,), (1,))


def _span(storage: torch.UntypedStorage) -> Range:
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _addresses(
    numbers: Sequence[Number], memory: Sequence[torch.Tensor], find: Find
) -> tuple[list[Number], list[int], list[torch.Tensor]]:
    """Addresses among the numbers, as places in their tensors, for those alone stay the same; what
    may be one and is no tensor's; and the memory that plain numbers and tables of pointers lead
    to."""
    told: list[Number] = []
    unknown: list[int] = []
    led: dict[int, Range] = {}
    tables = (tensor for tensor in memory if tensor.dtype in (torch.int64, torch.uint64))
    for number in numbers:
        own = find(number) if _may_be_address(number) else None
        told.append(number if own is None else int(number) - own[0])
    for address in (*numbers, *(entry for table in tables for entry in _entries(table))):
        if not _may_be_address(address):
            continue
        own = find(address)
        if own is None:
            unknown.append(address)
        else:
            led[own[0]] = own
    return told, unknown, [_bytes_at(own, memory) for own in led.values()]


def _told(copy: torch.Tensor, find: Find) -> torch.Tensor:
    """The copy, with addresses in a table of pointers told as places in their tensors."""
    if copy.dtype in (torch.int64, torch.uint64):
        words = copy.view(torch.int64)
        for address in _entries(copy):
            own = find(address)
            if own is not None:
                words[words == address] = address - own[0]
    return copy


def _may_be_address(number: Number) -> TypeGuard[int]:
    return isinstance(number, int) and LOWEST_ADDRESS <= number < 1 << 63


def _entries(table: torch.Tensor) -> list[int]:
    """What may be an address, each once, in the order of the table: addresses themselves have
    another order in each process."""
    values = table.detach().view(torch.int64).cpu().reshape(-1).numpy()
    values = values[values >= LOWEST_ADDRESS]
    _, first = np.unique(values, return_index=True)
    found: list[int] = values[np.sort(first)].tolist()
    return found


def _bytes_at(own: Range, memory: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor's own memory as bytes, found by its address alone."""
    device = next((tensor.device for tensor in memory), torch.device("cpu"))
    if device.type == "cpu":
        pointer = ctypes.cast(own[0], ctypes.POINTER(ctypes.c_uint8 * (own[1] - own[0])))
        return torch.frombuffer(pointer.contents, dtype=torch.uint8)
    made: Any = torch._C._construct_storage_from_data_pointer(own[0], device, own[1] - own[0])
    return torch.empty(0, dtype=torch.uint8, device=device).set_(made)


def _strays(addresses: Sequence[int]) -> int:
    """How many of them lie in mapped memory of this process."""
    mapped = list(_mapped()) if addresses else []
    return sum(any(s <= address < e for s, e in mapped) for address in addresses)


def _mapped() -> Iterator[Range]:
    for line in Path("/proc/self/maps").read_text(encoding="ascii", errors="replace").splitlines():
        start, _, end = line.partition(" ")[0].partition("-")
        yield int(start, 16), int(end, 16)


class Anywhere:
    """The memory of every tensor that Python holds, however it was made: looked up once."""

    def __init__(self, everything: Iterable[Any]) -> None:
        spans = sorted(set(_spans(everything)))
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def find(self, address: int) -> Range | None:
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._ends[place]:
            return None
        return self._starts[place], self._ends[place]


def _spans(everything: Iterable[Any]) -> Iterator[Range]:
    for value in everything:
        if type(value) in _PLAIN and value.layout is torch.strided:
            with suppress(RuntimeError):  # some have no storage
                own = _span(value.untyped_storage())
                if own[0] < own[1]:
                    yield own
