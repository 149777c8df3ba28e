"""Gate 4, shape generalisation: right, or an explicit refusal, for every shape in the contract.

Sizes around the kernel's own tile sizes and around powers of two, one, zero, primes and long rows;
one dim at a time, then all at once. A crash, a hang and a wrong value fail; raising does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, zip_longest
from math import prod
from typing import Final

import torch

from verifier.contract import Dim, DomainKind
from verifier.gate import Finding, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench
from verifier.referee.beyond import plan_beyond
from verifier.referee.inputs import torch_dtype
from verifier.referee.probes import first_dtypes, judged_dtypes
from verifier.subject import Arg, CallOptions, Poison, ReplyKind, Subject
from verifier.vast import Vast

Dims = dict[str, int]

CASES: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 6, DeviceMode.CUDA: 16}
"""How many shapes per dim."""

SHAPE_BUDGET: Final[Mapping[DeviceMode, int]] = {
    DeviceMode.CPU_INTERPRET: 1 << 15,
    DeviceMode.CUDA: 1 << 24,
}
"""Greatest number of elements of one tensor in this gate, but see ``_budget``."""

REFERENCE_BUDGET: Final = 1 << 25
"""Greatest number of elements of any tensor that the reference makes on its way."""

PRIME: Final = 17
ROWS: Final[Mapping[DeviceMode, int]] = {
    DeviceMode.CPU_INTERPRET: 72,
    DeviceMode.CUDA: 1 << 20,
}
"""Greatest number of independent rows: the interpreter takes about 2 ms for each program."""

COMMON_TILES: Final = (128, 32)
"""Tried where the source shows no tile size."""

GROSS: Final = 100.0
"""An error beyond this many times the ordinary bound is no question of tolerance."""

NO_ROOM: Final[Mapping[ReplyKind, str]] = {
    ReplyKind.MEMORY: "the device has no room for it",
    ReplyKind.TIMED_OUT: "it does not end within the time of one call",
}
"""Beyond 2**31 elements these say nothing about what the kernel would compute."""

EMPTY: Final = ("first", "last", "around")
"""Where the empty sequences of ragged inputs lie."""


class Shapes:
    """G4."""

    info = GateInfo(
        GateId.SHAPES,
        "Shape generalisation",
        "correct, or an explicit refusal, for every shape in the contract",
        tolerance_free=False,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Not where the contract fixes the shape."""
        if bench.contract.behaviour.fixed_shape:
            return "specialised: the contract fixes the shape"
        return None if bench.contract.dims else "the contract has no dims"

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """The most telling sizes of every dim in turn, then joint ones, then beyond 2**31."""
        dtypes = first_dtypes(bench)
        for dims in _assignments(bench)[: CASES[bench.mode] * (1 + len(bench.contract.dims))]:
            label = ", ".join(f"{name}={size}" for name, size in dims.items())
            yield bench.case(self.info.id, label, dims=dims, dtypes=dtypes, xl=False)
        if any(item.domain.kind is DomainKind.OFFSETS for item in bench.contract.inputs):
            for place in EMPTY:
                label = f"empty sequences {place}"
                yield bench.case(
                    self.info.id, label, dtypes=dtypes, xl=False, empty_sequences=place
                )
        yield self._beyond(bench)

    def _beyond(self, bench: Bench) -> CaseRecord:
        """One case, in the dtype that takes least room."""
        plan = plan_beyond(bench)
        label = "beyond 2**31 elements"
        if isinstance(plan, str):
            return bench.case(self.info.id, label, xl=True, why_not=plan)
        dtypes = min(judged_dtypes(bench), key=lambda kinds: _width(bench, kinds))
        return bench.case(
            self.info.id,
            f"{label}: {plan.dim}={plan.vast.length}",
            dims=plan.dims,
            dtypes=dtypes,
            xl=True,
            dim=plan.dim,
            vast=plan.vast.to_json(),
        )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """One call at this shape."""
        if case.params["xl"]:
            return _judge_beyond(bench, case, subject)
        args = bench.args(case)
        _collapse(bench, case, args)
        reply = subject.call(args)
        refused = bench.refused(reply)
        if refused is not None:
            return refused
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        if bench.contract.behaviour.random:
            return passed("shapes; values of a random op are not compared")
        finding = bench.compare(case, args, outputs)
        if finding.failed and not finding.hard:
            gross = bench.compare(case, args, outputs, widen=GROSS).failed
            return replace(finding, hard=gross)
        return finding


GATE: Final = Shapes()


def _judge_beyond(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """One call on tensors of more than 2**31 elements; a few of their rows are judged."""
    if bench.mode is not DeviceMode.CUDA:
        return not_applicable("more than 2**31 elements are judged on a GPU only")
    if "vast" not in case.params:
        return not_applicable(str(case.params["why_not"]))
    vast, args = Vast.from_json(case.params["vast"]), bench.args(case)
    reply = subject.call(args, CallOptions(vast=vast, poison=Poison.BIG))
    if reply.kind in NO_ROOM:
        return not_applicable(f"{NO_ROOM[reply.kind]} at that size")
    few = replace(case, dims={**case.dims, case.params["dim"]: len(vast.rows)})
    rows = vast.of_rows(args)
    outputs = bench.refused(reply) or bench.results(few, rows, reply)
    return outputs if isinstance(outputs, Finding) else bench.compare(few, rows, outputs)


def _width(bench: Bench, dtypes: Mapping[str, str]) -> int:
    """Bytes of one element of each input and output together."""
    contract = bench.contract
    kinds = [torch_dtype(contract.dtype(item, dtypes)) for item in contract.tensors]
    return sum(kind.itemsize for kind in kinds)


def _collapse(bench: Bench, case: CaseRecord, args: list[Arg]) -> None:
    """Leave all sequences empty but one, in every input of offsets."""
    place = case.params.get("empty_sequences")
    for item in bench.contract.inputs:
        offsets = bench.named(args)[item.name]
        if place is None or item.domain.kind is not DomainKind.OFFSETS:
            continue
        if isinstance(offsets, torch.Tensor) and offsets.numel() > 1:
            count = offsets.numel()
            full = {"first": count - 1, "last": 1, "around": count // 2}[place]
            total = offsets[-1].clone()
            offsets[:full], offsets[full:] = 0, total


def _sizes(dim: Dim, tiles: tuple[int, ...]) -> list[int]:
    """Sizes of one dim, most telling first: several tiles and a bit, one tile and a bit, one,
    nearly a tile, zero, then the same for smaller tiles, a prime, and the contract's candidates."""
    falling = sorted(tiles, reverse=True)
    over, under = [_within(dim, tile + 1) for tile in falling], [tile - 1 for tile in falling]
    first = [
        _within(dim, 2 * falling[0] + 1),
        over[0],
        1,
        under[0],
        0,
        *over[1:],
        PRIME,
        *under[1:],
    ]
    first.insert(2, dim.maximum)  # where it is affordable: the contract's own end
    wanted = [*first, falling[0], 2, 3, max(dim.candidates), *dim.candidates]
    return [size for size in dict.fromkeys(wanted) if dim.allows(size)]


def _within(dim: Dim, size: int) -> int:
    """The size, or the greatest that the contract has where it ends before: a tile is often less
    than the constant in its source (``65536 // itemsize``)."""
    return size if size <= dim.maximum else dim.maximum // dim.multiple_of * dim.multiple_of


def _base(bench: Bench) -> Dims:
    """Small sizes for the dims that do not vary, so that the one that does is affordable."""
    small = bench.small_dims()
    least = {
        name: min((c for c in bench.contract.dims[name].candidates if c > 1), default=size)
        for name, size in small.items()
    }
    return least if bench.contract.allows(least) else small


def _joint(bench: Bench, tiles: tuple[int, ...]) -> list[Dims]:
    """All dims at once: beyond a tile in every direction, one, a prime, three."""
    rows = bench.contract.behaviour.independent
    beyond = [
        {
            name: PRIME if name in rows else min(size, dim.maximum)
            for name, dim in bench.contract.dims.items()
        }
        for tile in sorted(tiles, reverse=True)
        for size in (2 * tile + 1, tile + 1)
    ]
    affordable = [dims for dims in beyond if _affordable(bench, dims)]
    return affordable[:2] + [dict.fromkeys(bench.contract.dims, n) for n in (1, PRIME, 3)]


def _one_at(bench: Bench, base: Dims, name: str, size: int) -> Dims:
    """One dim at this size, the others small; as small as they can be where that costs too much."""
    dims = {**base, name: size}
    if _affordable(bench, dims):
        return dims
    least = {other: max(1, dim.minimum) for other, dim in bench.contract.dims.items()}
    tight = {**least, name: size}
    return tight if bench.contract.allows(tight) else dims


def _assignments(bench: Bench) -> list[Dims]:
    """All assignments in the order of trying them, each within the contract and the budget."""
    base = _base(bench)
    tiles = bench.constants or COMMON_TILES
    per_dim = [
        [_one_at(bench, base, name, size) for size in _sizes(dim, tiles)]
        for name, dim in bench.contract.dims.items()
    ]
    in_turn = chain(*zip_longest(_joint(bench, tiles), *per_dim))
    seen: list[Dims] = []
    for dims in in_turn:
        if dims is None or dims in seen or not bench.contract.allows(dims):
            continue
        if _affordable(bench, dims):
            seen.append(dims)
    return seen


def _affordable(bench: Bench, dims: Dims) -> bool:
    rows = prod(dims[name] for name in bench.contract.behaviour.independent)
    elements = bench.elements(dims)
    if rows > ROWS[bench.mode] or elements > _budget(bench):
        return False
    if elements <= SHAPE_BUDGET[bench.mode] // 8:
        return True
    greatest = bench.reference_elements(dims)
    if greatest is None:
        return elements <= SHAPE_BUDGET[bench.mode]
    return greatest <= REFERENCE_BUDGET


def _budget(bench: Bench) -> int:
    """Room for a few of the greatest tiles, where they are greater than most."""
    return max(SHAPE_BUDGET[bench.mode], 4 * max(bench.constants, default=0))
