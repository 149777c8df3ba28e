"""In the host: what the kernel's launches were handed, and what they left behind.

Kept for calls with ``watch`` alone, whose data are small. The referee compares two such calls: see
``verifier.gates.g12_provenance``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from verifier.candidate.dtypes import NAMES

MAX_LAUNCHES: Final = 2048
MAX_NBYTES: Final = 32 << 20
MAX_TENSORS: Final = 64
MAX_NUMBERS: Final = 256
_MAX_DEPTH: Final = 4
_LOWEST_ADDRESS: Final = 1 << 32

Range = tuple[int, int]


@dataclass(slots=True)
class Launch:
    """Copies of its tensors before and after it, and its numbers."""

    before: tuple[torch.Tensor, ...]
    after: tuple[torch.Tensor, ...] = ()
    numbers: tuple[float, ...] = ()
    strays: int = 0
    """How many numbers among its arguments are addresses of memory that is no tensor's."""


@dataclass(slots=True)
class Witness:
    """Copies what every launch of one call sees. ``full`` says that it could not keep all."""

    launches: list[Launch] = field(default_factory=list)
    full: bool = False
    _nbytes: int = 0

    def arrive(self, arguments: Sequence[Any], known: Sequence[Range]) -> list[torch.Tensor]:
        """A launch is about to happen; its tensors, for ``leave``."""
        leaves = list(_leaves(arguments, _MAX_DEPTH))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        numbers = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        if not self._room(tensors) or len(tensors) > MAX_TENSORS or len(numbers) > MAX_NUMBERS:
            self.full = True
            return []
        ranges = [*known, *map(_span, tensors)]
        self.launches.append(
            Launch(
                before=_copies(tensors),
                numbers=tuple(map(float, numbers)),
                strays=sum(1 for number in _addresses(numbers, tensors) if _stray(number, ranges)),
            )
        )
        return tensors

    def leave(self, tensors: Sequence[torch.Tensor]) -> None:
        """The launch whose tensors these are has ended."""
        if tensors:
            self.launches[-1].after = _copies(tensors)

    def _room(self, tensors: Sequence[torch.Tensor]) -> bool:
        self._nbytes += 2 * sum(tensor.numel() * tensor.itemsize for tensor in tensors)
        return len(self.launches) < MAX_LAUNCHES and self._nbytes <= MAX_NBYTES


def _leaves(value: Any, depth: int) -> Iterator[torch.Tensor | int | float]:
    """The tensors and numbers in an argument; descriptors and wrappers are seen through."""
    if isinstance(value, torch.Tensor):
        if value.dtype in NAMES and value.layout is torch.strided:
            yield value
    elif isinstance(value, int | float):
        yield value
    elif depth and isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item, depth - 1)
    elif depth and isinstance(value, Mapping):
        yield from _leaves(list(value.values()), depth - 1)
    elif depth:
        inner = [getattr(value, name, None) for name in ("base", "value")]
        yield from _leaves(inner, depth - 1)


def _copies(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """On the CPU, dense, detached: what was there at this moment."""
    return tuple(tensor.detach().to("cpu", copy=True).contiguous() for tensor in tensors)


def _span(tensor: torch.Tensor) -> Range:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _addresses(numbers: Sequence[int | float], tensors: Sequence[torch.Tensor]) -> Iterator[int]:
    """Integers great enough to be addresses, in scalars and in tables of pointers."""
    yield from (n for n in numbers if isinstance(n, int) and n >= _LOWEST_ADDRESS)
    for tensor in tensors:
        if tensor.dtype in (torch.int64, torch.uint64):
            values = tensor.detach().reshape(-1).view(torch.int64).cpu()
            yield from torch.unique(values[values >= _LOWEST_ADDRESS]).tolist()


def _stray(address: int, known: Sequence[Range]) -> bool:
    """Mapped memory of this process, but of no tensor that anybody knows."""
    if any(start <= address <= end for start, end in known):
        return False
    return any(start <= address < end for start, end in _mapped())


def _mapped() -> Iterator[Range]:
    for line in Path("/proc/self/maps").read_text(encoding="ascii", errors="replace").splitlines():
        start, _, end = line.partition(" ")[0].partition("-")
        yield int(start, 16), int(end, 16)
