"""Sizes beyond 2**31 elements: along which dim a task's tensors can grow there, and what to read.

The dim must count independent rows, so that a few of them can be judged alone, and each tensor must
have it as one plain axis or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from verifier.contract import Contract, DomainKind, Input, Output
from verifier.expressions import names
from verifier.referee.bench import Bench
from verifier.vast import Vast

BEYOND: Final = 1 << 31
"""One more than what a signed 32-bit offset can name."""
BLOCK: Final = 61
"""Rows that are repeated: a prime, so that no offset that wraps around meets an equal row."""
MARGIN: Final = 64
"""Rows beyond the last that a 32-bit offset reaches."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of the block that is sent, and how it grows; ``dim`` counts its rows."""

    dims: Mapping[str, int]
    dim: str
    vast: Vast


def plan_beyond(bench: Bench) -> Plan | str:
    """The plan for this task, or why there is none."""
    contract = bench.contract
    if contract.behaviour.random:
        return "the rows of a random op cannot be judged alone"
    if any(output.in_place_of for output in contract.outputs):
        return "an output in place of an input is not read back in rows"
    if any(item.domain.kind is DomainKind.OFFSETS for item in contract.inputs):
        return "ragged inputs have no rows to repeat"
    for dim in contract.behaviour.independent:
        if all(_has_plain_axis(item, dim) for item in contract.outputs) and all(
            _has_plain_axis(item, dim) or not _mentions(item, dim) for item in contract.inputs
        ):
            plan = _along(bench, dim)
            if plan is not None:
                return plan
    return "no dim of independent rows can grow that far within the contract"


def _mentions(item: Input | Output, dim: str) -> bool:
    return any(dim in names(size) for size in item.shape)


def _has_plain_axis(item: Input | Output, dim: str) -> bool:
    """Whether the dim is the size of exactly one axis, and enters no other."""
    return [size for size in item.shape if dim in names(size)] == [dim]


def _along(bench: Bench, dim: str) -> Plan | None:
    contract = bench.contract
    if not any(_has_plain_axis(item, dim) for item in contract.inputs):
        return None
    for others in (bench.small_dims(), contract.usual_dims(), _greatest(contract)):
        small = {**others, dim: BLOCK}
        row = bench.elements({**small, dim: 1})
        length = BEYOND // max(row, 1) + MARGIN
        if contract.allows(small) and contract.allows({**small, dim: length}):
            return _plan(contract, dim, small, row, length)
    return None


def _greatest(contract: Contract) -> dict[str, int]:
    return {name: max(dim.candidates) for name, dim in contract.dims.items()}


def _plan(contract: Contract, dim: str, small: Mapping[str, int], row: int, length: int) -> Plan:
    rows = tuple(sorted({0, 1, length // 2, *_around(BEYOND // row, length), length - 1}))
    inputs = tuple(_axis(contract, item, dim) for item in contract.inputs)
    by_name = dict(zip((item.name for item in contract.inputs), inputs, strict=True))
    axes = tuple(by_name.get(name) for name in contract.call_order)
    out_axes = tuple(contract.axes(item, dim)[0] for item in contract.outputs)
    return Plan(small, dim, Vast(length, rows, axes, out_axes))


def _around(edge: int, length: int) -> list[int]:
    """The rows at an edge, as far as there are any."""
    return [row for row in range(edge - 2, edge + 3) if 0 <= row < length]


def _axis(contract: Contract, item: Input, dim: str) -> int | None:
    axes = contract.axes(item, dim)
    return axes[0] if axes else None
