"""Many calls in a row on inputs that already lie on the device: the loop that timing is made of.

The untrusted host runs it around a kernel, the referee runs the very same loop around its own
baselines and around nothing at all. So what the loop itself costs is known from a process that is
believed, and the referee's clock over the host's loop can be held against what the host claims
(docs/timing.md). Without a GPU its marks are readings of a clock, which is how it is tested.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch

Call = Callable[[Sequence[Any]], tuple[torch.Tensor, ...]]

_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_WARM_UP: Final = 3
# What a kernel patches later must not be what we call.
_Event: Final[Any] = torch.cuda.Event
_elapsed_ms: Final[Any] = torch.cuda.Event.elapsed_time
_record: Final[Any] = torch.cuda.Event.record
_synchronize: Final[Any] = torch.cuda.synchronize


class GraphError(RuntimeError):
    """The calls cannot be captured in a CUDA graph; the message says why."""


@dataclass(frozen=True, slots=True)
class Tape:
    """One run of the loop: what each call works on, and what happens around it.

    ``shifts`` holds a secret number a call, or, with ``in_graph``, a replay; ``in_graph`` holds one
    more for each call inside the graph. ``key`` weighs the words of an output in its digest. A
    ``dense`` run makes all inputs first, then the calls without anything between them, then takes
    all outputs: the referee's clock alone says how long that is, for it has no marks.
    """

    shifts: tuple[int, ...]
    key: tuple[int, int]
    flush_bytes: int = 0
    in_graph: tuple[int, ...] = ()
    dense: bool = False

    @property
    def calls(self) -> int:
        return len(self.shifts) * max(len(self.in_graph), 1)

    def shift(self, call: int) -> int:
        """What turns the inputs of this call, counted from 0."""
        if not self.in_graph:
            return self.shifts[call]
        replay, place = divmod(call, len(self.in_graph))
        return self.shifts[replay] + self.in_graph[place]

    def to_json(self) -> dict[str, Any]:
        return {
            "shifts": list(self.shifts),
            "key": list(self.key),
            "flush_bytes": self.flush_bytes,
            "in_graph": list(self.in_graph),
            "dense": self.dense,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Tape:
        first, second = body["key"]
        return cls(
            tuple(body["shifts"]),
            (first, second),
            body["flush_bytes"],
            tuple(body["in_graph"]),
            body["dense"],
        )


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays the same for all tapes of one workload.

    ``slots`` input sets lie at addresses of their own and take turns. ``fixed`` names arguments
    that must not be turned (ascending offsets), ``in_place`` those that hold an output afterwards.
    """

    slots: int
    fixed: tuple[int, ...] = ()
    in_place: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"slots": self.slots, "fixed": list(self.fixed), "in_place": list(self.in_place)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Setup:
        return cls(body["slots"], tuple(body["fixed"]), tuple(body["in_place"]))


def turn(shift: int, position: int, count: int) -> int:
    """By how many of its ``count`` elements argument ``position`` is turned; additive in shift."""
    return shift * (2 * position + 1) % count if count else 0


def turned(tensor: torch.Tensor, shift: int, position: int) -> torch.Tensor:
    """A copy whose elements, in memory order, begin at ``turn`` and go round."""
    flat = tensor.reshape(-1)
    return torch.roll(flat, -turn(shift, position, flat.numel())).reshape(tensor.shape)


def digest_of(tensor: torch.Tensor, key: tuple[int, int]) -> int:
    """sum over words i of word[i] * (i * key[0] + key[1]) modulo 2**64, of a tensor on the CPU.

    Whoever does not have the whole right answer cannot say it, and it is quick on a device.
    """
    raw = _raw(tensor).numpy().tobytes()
    raw += bytes(-len(raw) % _WORD)
    words = np.frombuffer(raw, dtype=np.uint64)
    places = np.arange(len(words), dtype=np.uint64)
    weights = places * np.uint64(key[0] & _MASK) + np.uint64(key[1] & _MASK)
    return int((words * weights).sum(dtype=np.uint64))


def commit_of(digests: Sequence[Sequence[int]]) -> str:
    """What binds a host to all its digests before it knows which will be looked at."""
    array = np.asarray([[value & _MASK for value in row] for row in digests], dtype=np.uint64)
    return hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, in order."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Its values in memory order, whatever the tensor looks like."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


class _Source:
    """One tensor argument: its values twice in a row, so that each turn of them is one copy."""

    def __init__(self, tensor: torch.Tensor, position: int, *, fixed: bool) -> None:
        self.tensor, self.position = tensor, position
        self.count = 0 if fixed else tensor.numel()
        raw = _raw(tensor.contiguous())
        self.twice = torch.cat([raw, raw])
        self._working: torch.Tensor | None = None

    @property
    def working(self) -> torch.Tensor:
        """What a captured graph copies from; made when first needed, for it may be big."""
        if self._working is None:
            self._working = self.twice.clone()
        return self._working

    def view(self, of: torch.Tensor, shift: int) -> torch.Tensor:
        start = turn(shift, self.position, self.count) * self.tensor.itemsize
        return of[start : start + self.tensor.nbytes]

    def reseat(self, shift: int) -> None:
        """Turn what a captured graph copies from."""
        half = self.tensor.nbytes
        for part in (self.working[:half], self.working[half:]):
            part.copy_(self.view(self.twice, shift))


class Ring:
    """Input sets at addresses of their own; before each call the next one gets new contents."""

    def __init__(self, args: Sequence[Any], setup: Setup) -> None:
        self._sources = {
            place: _Source(arg, place, fixed=place in setup.fixed)
            for place, arg in enumerate(args)
            if isinstance(arg, torch.Tensor)
        }
        self._args, self._slots = args, setup.slots
        self._sets = [self._set(args) for _ in range(setup.slots)]

    def many(self, shifts: Sequence[int]) -> list[list[Any]]:
        """The arguments of so many calls, all at once, each at addresses of its own."""
        while len(self._sets) < len(shifts):
            self._sets.append(self._set(self._args))
        return [
            self._write(args, s, captured=False)
            for args, s in zip(self._sets, shifts, strict=False)
        ]

    def _set(self, args: Sequence[Any]) -> list[Any]:
        return [
            torch.empty_like(arg, memory_format=torch.contiguous_format)
            if isinstance(arg, torch.Tensor)
            else arg
            for arg in args
        ]

    def write(self, number: int, shift: int, *, captured: bool = False) -> list[Any]:
        """The arguments of the next call."""
        return self._write(self._sets[number % self._slots], shift, captured=captured)

    def _write(self, args: Sequence[Any], shift: int, *, captured: bool) -> list[Any]:
        for place, source in self._sources.items():
            whole = source.working if captured else source.twice
            _raw(args[place]).copy_(source.view(whole, shift))
        return list(args)

    def reseat(self, shift: int) -> None:
        for source in self._sources.values():
            source.reseat(shift)


class Outputs:
    """A copy of each call's outputs, made in stream order behind the call, and its digest."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self.kept: list[tuple[torch.Tensor, ...]] = []
        self.digests: list[torch.Tensor] = []
        self._weights: dict[int, torch.Tensor] = {}

    def take(self, outputs: Sequence[torch.Tensor]) -> None:
        """Those of one call."""
        taken = tuple(
            torch.empty_like(out, memory_format=torch.contiguous_format).copy_(out.detach())
            for out in outputs
        )
        self.kept.append(taken)
        self.digests.append(torch.stack([self._digests(_raw(out)) for out in taken]))

    def take_all(self, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        """Those of many calls, in few launches."""
        stacks = [torch.stack(list(map(_plain, outs))) for outs in zip(*calls, strict=True)]
        self.kept += zip(*(stack.unbind() for stack in stacks), strict=True)
        columns = [self._digests(_raw(stack).view(len(calls), -1)) for stack in stacks]
        self.digests += torch.stack(columns, dim=1).unbind()

    def _digests(self, raw: torch.Tensor) -> torch.Tensor:
        """Of the bytes along the last axis."""
        if raw.shape[-1] % _WORD:
            raw = torch.nn.functional.pad(raw, (0, -raw.shape[-1] % _WORD))
        words = raw.view(torch.int64)
        return (words * self._weights_of(words.shape[-1], words.device)).sum(-1)

    def _weights_of(self, count: int, device: torch.device) -> torch.Tensor:
        if count not in self._weights:
            places = torch.arange(count, dtype=torch.int64, device=device)
            first, second = (_signed(part) for part in self.key)
            self._weights[count] = places * first + second
        return self._weights[count]


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


class Marks:
    """Device events, or readings of a clock where there is no device, in pairs around calls."""

    def __init__(self, device: torch.device, *, external: bool = False) -> None:
        self._cuda = device.type == "cuda"
        self._external = external
        self.pairs: list[tuple[Any, Any]] = []

    def mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        more = {"external": True} if self._external else {}
        event = _Event(enable_timing=True, **more)
        _record(event)
        return event

    def seconds(self) -> list[float]:
        """Of each pair; after the device has come to rest."""
        if not self._cuda:
            return [end - start for start, end in self.pairs]
        return [float(_elapsed_ms(start, end)) / 1e3 for start, end in self.pairs]


@dataclass(slots=True)
class Played:
    """What one run of the loop left behind."""

    seconds: list[float] = field(default_factory=list)
    digests: list[list[int]] = field(default_factory=list)
    kept: list[tuple[torch.Tensor, ...]] = field(default_factory=list)

    @property
    def commit(self) -> str:
        return commit_of(self.digests)


class Stopwatch:
    """The loop around one call on one device. ``arm`` it with arguments, then play tapes."""

    def __init__(self, device: torch.device, call: Call) -> None:
        self._device, self._call = device, call
        self._flush = torch.empty(0, dtype=torch.uint8, device=device)
        self._ring: Ring | None = None
        self._setup = Setup(1)
        self.played = Played()

    def arm(self, args: Sequence[Any], setup: Setup) -> None:
        """Lay out the ring and call a few times, so that whatever compiles has compiled."""
        self.played = Played()
        self._ring, self._setup = Ring(args, setup), setup
        for number in range(_WARM_UP):
            self._called(self._ring.write(number, number), Outputs((1, 0)))
        self._rest()

    def play(self, tape: Tape) -> Played:
        """One run. Raises GraphError when a graph is asked for and cannot be had."""
        self.played = Played()
        if self._flush.numel() < tape.flush_bytes:
            self._flush = torch.empty(tape.flush_bytes, dtype=torch.uint8, device=self._device)
        way = self._replays if tape.in_graph else self._dense if tape.dense else self._stream
        self.played = way(tape)
        return self.played

    def reveal(self, call: int) -> tuple[torch.Tensor, ...]:
        """The outputs that were kept of one call."""
        return self.played.kept[call]

    def _called(self, args: Sequence[Any], outputs: Outputs) -> None:
        returned = self._call(args)
        outputs.take((*returned, *(args[place] for place in self._setup.in_place)))

    def _rest(self) -> None:
        if self._device.type == "cuda":
            _synchronize()

    def _body(self, tape: Tape, shifts: Sequence[int], marks: Marks, outputs: Outputs) -> None:
        """The calls, each on new contents, between two marks, its outputs taken at once."""
        assert self._ring is not None  # noqa: S101 - armed first
        flush, captured = self._flush[: tape.flush_bytes], bool(tape.in_graph)
        for number, shift in enumerate(shifts):
            args = self._ring.write(number, shift, captured=captured)
            if flush.numel():
                flush.zero_()
            start = marks.mark()
            returned = self._call(args)
            marks.pairs.append((start, marks.mark()))
            outputs.take((*returned, *(args[place] for place in self._setup.in_place)))

    def _stream(self, tape: Tape) -> Played:
        marks, outputs = Marks(self._device), Outputs(tape.key)
        self._body(tape, tape.shifts, marks, outputs)
        digests = torch.stack(outputs.digests).cpu().tolist()
        self._rest()
        return Played(marks.seconds(), digests, outputs.kept)

    def _dense(self, tape: Tape) -> Played:
        """Three phases, each at its end before the next begins."""
        assert self._ring is not None  # noqa: S101 - armed first
        outputs, sets = Outputs(tape.key), self._ring.many(tape.shifts)
        self._rest()
        returned = [self._call(args) for args in sets]
        self._rest()
        in_place = self._setup.in_place
        outputs.take_all(
            [
                (*outs, *(args[p] for p in in_place))
                for outs, args in zip(returned, sets, strict=True)
            ]
        )
        digests = torch.stack(outputs.digests).cpu().tolist()
        return Played([0.0] * tape.calls, digests, outputs.kept)

    def _replays(self, tape: Tape) -> Played:
        """The same calls captured once and replayed: what is launched costs the host nothing."""
        assert self._ring is not None  # noqa: S101 - armed first
        graph, marks, outputs = self._captured(tape)
        played, digests = Played(), []
        for shift in tape.shifts:
            self._ring.reseat(shift)
            graph.replay()
            played.kept += [tuple(out.clone() for out in outs) for outs in outputs.kept]
            digests.append(torch.stack(outputs.digests).clone())
            self._rest()  # the next replay records the same events
            played.seconds += marks.seconds()
        played.digests = torch.cat(digests).cpu().tolist()
        return played

    def _captured(self, tape: Tape) -> tuple[Any, Marks, Outputs]:
        if self._device.type != "cuda":
            raise GraphError("there are no CUDA graphs on this device")
        graph: Any = torch.cuda.CUDAGraph()
        marks, outputs = Marks(self._device, external=True), Outputs(tape.key)
        self._beforehand(outputs)
        try:
            with _capturing(graph):
                self._body(tape, tape.in_graph, marks, outputs)
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            raise GraphError(f"{type(error).__name__}: {text[0][:200]}") from error
        return graph, marks, outputs

    def _beforehand(self, outputs: Outputs) -> None:
        """Call once, so that nothing is compiled or laid out inside the capture."""
        assert self._ring is not None  # noqa: S101 - armed first
        self._ring.reseat(0)
        self._called(self._ring.write(0, 0), outputs)
        outputs.kept.clear()
        outputs.digests.clear()
        self._rest()


@contextmanager
def _capturing(graph: Any) -> Iterator[None]:
    """Capture on a stream of its own; other threads of the kernel may go on."""
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        yield
