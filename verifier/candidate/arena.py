"""Memory that referee and candidate share: sealed memfds, and how inputs lie in them.

The referee makes an arena, seals its size and lays each input storage into it between two canary
zones. What the kernel did to inputs and canaries is read from the referee's own mapping. Outputs
come back through a second arena at offsets that the host names and the referee checks.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from verifier.candidate.dtypes import DTYPES, NAMES, as_bytes, fill, poison_word
from verifier.subject import Arg, InfrastructureError, Poison

GUARD_BYTES: Final = 256
FAR_BYTES: Final = 64 << 10
"""Of a guard zone where only what is left in memory tells where a kernel has written."""
ALIGN_BYTES: Final = 256
MAX_DIMS: Final = 32
MAX_OUTPUTS: Final = 64
_PUNCH_HOLE: Final = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Arena:
    """A sealed memfd, mapped. Sparse: only pages that somebody touches take memory."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = round_up(max(nbytes, mmap.PAGESIZE), mmap.PAGESIZE)
        try:
            self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.fd, self.nbytes)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
            self.bytes = map_bytes(self.fd, self.nbytes)
        except OSError as error:
            raise InfrastructureError(f"no shared memory of {nbytes} bytes: {error}") from error

    def punch(self) -> None:
        """Give the pages back to the system; they read as zeros from now on."""
        size = ctypes.c_longlong(self.nbytes)
        _LIBC.fallocate(self.fd, _PUNCH_HOLE, ctypes.c_longlong(0), size)

    def close(self) -> None:
        """Release memory and descriptor; the peer's mapping stays, empty."""
        if self.fd >= 0:
            self.punch()
            os.close(self.fd)
            self.fd = -1
            del self.bytes


def map_bytes(fd: int, nbytes: int) -> torch.Tensor:
    """Map a memfd as a uint8 tensor that keeps the mapping alive."""
    return torch.frombuffer(mmap.mmap(fd, nbytes, mmap.MAP_SHARED), dtype=torch.uint8)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one input storage lies in its arena, and the dtype that its canaries are made for."""

    argument: int
    start: int
    nbytes: int
    dtype: torch.dtype

    @property
    def end(self) -> int:
        return self.start + self.nbytes

    def to_json(self) -> dict[str, int]:
        return {"start": self.start, "nbytes": self.nbytes}


@dataclass(frozen=True, slots=True)
class Layout:
    """All inputs of one call: storages in the arena, and the slot that each argument uses.
    ``guard_bytes`` on both sides of each storage are canaries."""

    slots: tuple[Slot, ...]
    slot_of: tuple[int | None, ...]
    start: int
    end: int
    guard_bytes: int = GUARD_BYTES


def layout_plan(args: Sequence[Arg], start: int, guard_bytes: int = GUARD_BYTES) -> Layout:
    """Place the storages of ``args`` one behind the other from ``start``; shared ones once."""
    slots: list[Slot] = []
    seen: dict[tuple[int, int], int] = {}
    slot_of: list[int | None] = []
    cursor = start
    for position, arg in enumerate(args):
        if not isinstance(arg, torch.Tensor):
            slot_of.append(None)
            continue
        storage = arg.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else (0, -1 - position)
        if key not in seen:
            seen[key] = len(slots)
            begin = round_up(cursor + guard_bytes, ALIGN_BYTES)
            slots.append(Slot(position, begin, storage.nbytes(), arg.dtype))
            cursor = slots[-1].end + guard_bytes
        slot_of.append(seen[key])
    return Layout(tuple(slots), tuple(slot_of), start, cursor, guard_bytes)


def layout_write(arena: Arena, layout: Layout, args: Sequence[Arg], guard: Poison) -> None:
    """Copy every storage to its place and draw its canaries."""
    for slot in layout.slots:
        source = args[slot.argument]
        assert isinstance(source, torch.Tensor)  # noqa: S101 - slots come from tensors only
        if slot.nbytes:
            arena.bytes[slot.start : slot.end].copy_(as_bytes(source))
        for zone in _zones(arena, slot, layout.guard_bytes):
            fill(zone, slot.dtype, guard)


def _zones(arena: Arena, slot: Slot, nbytes: int) -> tuple[torch.Tensor, torch.Tensor]:
    before = arena.bytes[slot.start - nbytes : slot.start]
    return before, arena.bytes[slot.end : slot.end + nbytes]


def layout_touched(arena: Arena, layout: Layout, guard: Poison) -> Iterable[str]:
    """Name each canary zone whose bytes are no longer what the referee drew."""
    for slot in layout.slots:
        whole = poison_word(slot.dtype, guard)
        pattern = whole * (layout.guard_bytes // len(whole))
        for zone, side in zip(
            _zones(arena, slot, layout.guard_bytes),
            ("before its start", "after its end"),
            strict=True,
        ):
            if zone.numpy().tobytes() != pattern:
                yield f"argument {slot.argument}: {side}"


def layout_read(arena: Arena, layout: Layout) -> tuple[torch.Tensor | None, ...]:
    """Private copies of the storages after the call, one for each tensor argument."""
    after = [arena.bytes[slot.start : slot.end].clone() for slot in layout.slots]
    return tuple(None if index is None else after[index] for index in layout.slot_of)


def args_to_json(args: Sequence[Arg], layout: Layout) -> list[dict[str, Any]]:
    """What the host needs to rebuild the arguments over the arena."""
    return [_arg_to_json(arg, index) for arg, index in zip(args, layout.slot_of, strict=True)]


def _arg_to_json(arg: Arg, slot: int | None) -> dict[str, Any]:
    if not isinstance(arg, torch.Tensor):
        return {"value": arg}
    return {
        "slot": slot,
        "dtype": NAMES[arg.dtype],
        "shape": list(arg.shape),
        "stride": list(arg.stride()),
        "offset": arg.storage_offset(),
        "requires_grad": arg.requires_grad,
    }


def output_read(arena: Arena, claim: Any) -> torch.Tensor:
    """A private copy of one returned tensor. Raises ValueError if the claim does not add up."""
    dtype, shape, start = DTYPES[claim["dtype"]], claim["shape"], claim["start"]
    if len(shape) > MAX_DIMS or not all(_natural(number) for number in (*shape, start)):
        raise ValueError("a shape or an offset is no natural number")
    nbytes = math.prod(shape) * dtype.itemsize
    if start % ALIGN_BYTES or start + nbytes > arena.nbytes:
        raise ValueError("an output lies outside the arena")
    return arena.bytes[start : start + nbytes].clone().view(dtype).reshape(shape)


def _natural(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 48
