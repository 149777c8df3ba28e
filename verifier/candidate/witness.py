"""In the host: what the kernel's launches were handed, and what they left behind.

Kept for calls with ``watch`` alone, whose data are small. The referee compares two such calls: see
``verifier.referee.provenance``. What cannot be seen through is said to be unseen, never skipped.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, TypeGuard

import torch

from verifier.candidate.dtypes import NAMES

MAX_LAUNCHES: Final = 2048
MAX_NBYTES: Final = 32 << 20
MAX_TENSORS: Final = 64
MAX_NUMBERS: Final = 4096
_MAX_DEPTH: Final = 8
_LOWEST_ADDRESS: Final = 1 << 32

Range = tuple[int, int]
Number = int | float
Find = Callable[[int], Range | None]
"""The memory of a known tensor around an address; None if it is nobody's."""


_TRITON: Final[set[str]] = set()
"""Triton's modules, as they were before any kernel was loaded."""


def triton_remember() -> None:
    """Before a kernel is loaded."""
    _TRITON.update(name for name in sys.modules if name.partition(".")[0] == "triton")


class _UnseenError(Exception):
    """An argument that cannot be seen through."""


@dataclass(slots=True)
class Launch:
    """Copies of the memory behind its tensors before and after it, and everything else about it
    as numbers (texts as their hashes)."""

    before: tuple[torch.Tensor, ...]
    after: tuple[torch.Tensor, ...] = ()
    numbers: tuple[Number, ...] = ()
    strays: int = 0
    """How many numbers among its arguments are addresses of memory that is no tensor's."""


@dataclass(slots=True)
class Witness:
    """Copies what every launch of one call sees. ``full`` says that something was not seen."""

    launches: list[Launch] = field(default_factory=list)
    full: bool = False
    _nbytes: int = 0

    def arrive(self, what: str, arguments: Any, find: Find) -> list[torch.Tensor] | None:
        """A launch is about to happen; the memory that it can reach, for ``leave``."""
        try:
            leaves = list(_leaves(arguments, _MAX_DEPTH))
        except _UnseenError:
            self.full = True
            return None
        given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        numbers = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        memory, shapes = _reached(given, find)
        numbers, strays, pointed = _addresses(numbers, memory, find)
        memory += pointed
        if not self._room(memory) or len(numbers) + len(shapes) > MAX_NUMBERS:
            self.full = True
            return None
        known = (_hash(what), *shapes, *numbers)
        before = _told(_copies(memory), find)
        self.launches.append(Launch(before=before, numbers=known, strays=strays))
        return memory

    def leave(self, memory: Sequence[torch.Tensor] | None, grid: Sequence[int] = ()) -> None:
        """The launch whose memory this is has ended."""
        if memory is None:
            return
        last = self.launches[-1]
        last.after = _copies(memory)
        last.numbers = (*last.numbers, *grid)

    def _room(self, tensors: Sequence[torch.Tensor]) -> bool:
        self._nbytes += 2 * sum(tensor.numel() * tensor.itemsize for tensor in tensors)
        few = len(self.launches) < MAX_LAUNCHES and len(tensors) <= MAX_TENSORS
        return few and self._nbytes <= MAX_NBYTES


def _leaves(value: Any, depth: int) -> Iterator[torch.Tensor | Number]:
    """The tensors and numbers in an argument; descriptors and wrappers are seen through."""
    if depth == 0:
        raise _UnseenError
    if isinstance(value, torch.Tensor):
        if value.dtype not in NAMES or value.layout is not torch.strided:
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
    else:
        raise _UnseenError


def _is_name(value: Any) -> bool:
    """Something that stands for itself and holds no data of its own."""
    return value is None or isinstance(
        value, str | torch.dtype | torch.device | torch.layout | torch.memory_format
    )


def _is_tritons(kind: type) -> bool:
    """Triton's own wrappers: descriptors, constexpr, dtypes, functions, reinterpreted tensors. A
    type that only says so of itself is none: Triton's modules must know it by its name."""
    module = sys.modules.get(kind.__module__) if kind.__module__ in _TRITON else None
    return getattr(module, kind.__name__, None) is kind


def _fields(value: Any) -> list[Any]:
    """What a wrapper of Triton's holds; a kernel or a dtype is as good as its name."""
    plain = getattr(value, "fn", None)
    if plain is not None:
        return [getattr(plain, "__qualname__", "")]
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
        own = find(tensor.data_ptr()) or _span(storage)
        memory.setdefault((own[0], tensor.dtype), _view(storage, own, tensor.dtype))
        shapes += [tensor.data_ptr() - own[0] if tensor.numel() else 0]
        shapes += [*tensor.shape, *tensor.stride()]
    return list(memory.values()), shapes


def _view(storage: torch.UntypedStorage, own: Range, dtype: torch.dtype) -> torch.Tensor:
    """The part of a storage that is an allocation's own, as elements of this dtype."""
    size = dtype.itemsize
    start = (own[0] - storage.data_ptr()) // size if storage.nbytes() else 0
    count = (own[1] - own[0]) // size if storage.nbytes() else 0
    blank = torch.empty(0, dtype=dtype, device=storage.device)
    return blank.set_(storage, start, (count,), (1,))


def _span(storage: torch.UntypedStorage) -> Range:
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _copies(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """On the CPU, dense, detached: what was there at this moment."""
    return tuple(tensor.detach().to("cpu", copy=True).contiguous() for tensor in tensors)


def _addresses(
    numbers: Sequence[Number], memory: Sequence[torch.Tensor], find: Find
) -> tuple[list[Number], int, list[torch.Tensor]]:
    """Addresses among the numbers, as places in their tensors, for those alone stay the same; how
    many are nobody's; and the memory that plain numbers and tables of pointers lead to."""
    told: list[Number] = []
    strays, led = 0, {}
    tables = (tensor for tensor in memory if tensor.dtype in (torch.int64, torch.uint64))
    for number in numbers:
        own = find(number) if _may_be_address(number) else None
        told.append(number if own is None else int(number) - own[0])
    for address in (*numbers, *(entry for table in tables for entry in _entries(table))):
        if not _may_be_address(address):
            continue
        own = find(address)
        strays += own is None and _stray(address)
        if own is not None:
            led[own[0]] = own
    return told, strays, [_bytes_at(own, memory) for own in led.values()]


def _told(copies: tuple[torch.Tensor, ...], find: Find) -> tuple[torch.Tensor, ...]:
    """The copies, with addresses in tables of pointers told as places in their tensors."""
    for table in copies:
        if table.dtype in (torch.int64, torch.uint64):
            words = table.view(torch.int64)
            for address in _entries(table):
                own = find(address)
                if own is not None:
                    words[words == address] = address - own[0]
    return copies


def _may_be_address(number: Number) -> TypeGuard[int]:
    return isinstance(number, int) and _LOWEST_ADDRESS <= number < 1 << 63


def _entries(table: torch.Tensor) -> list[int]:
    values = table.detach().view(torch.int64).cpu()
    found: list[int] = torch.unique(values[values >= _LOWEST_ADDRESS]).tolist()
    return found


def _bytes_at(own: Range, memory: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor's own memory as bytes, found by its address alone."""
    device = next((tensor.device for tensor in memory), torch.device("cpu"))
    if device.type == "cpu":
        pointer = ctypes.cast(own[0], ctypes.POINTER(ctypes.c_uint8 * (own[1] - own[0])))
        return torch.frombuffer(pointer.contents, dtype=torch.uint8)
    made: Any = torch._C._construct_storage_from_data_pointer(own[0], device, own[1] - own[0])
    return torch.empty(0, dtype=torch.uint8, device=device).set_(made)


def _stray(address: int) -> bool:
    """Mapped memory of this process."""
    return address >= _LOWEST_ADDRESS and any(s <= address < e for s, e in _mapped())


def _mapped() -> Iterator[Range]:
    for line in Path("/proc/self/maps").read_text(encoding="ascii", errors="replace").splitlines():
        start, _, end = line.partition(" ")[0].partition("-")
        yield int(start, 16), int(end, 16)
