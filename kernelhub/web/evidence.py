"""A counterexample as the page shows it. The documents come from nodes, so nothing is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelhub.web.catalogue import BY_ID, GatePage
from kernelhub.web.commands import python_command
from kernelhub.web.text import one_line, strip_control
from verifier.records import GateId

VALUES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class SliceRow:
    """A few values of one tensor."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    values: tuple[str, ...]
    bad: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """One failed gate with its smallest counterexample, ready for the template."""

    page: GatePage
    hard: bool
    detail: str
    label: str
    dims: Mapping[str, str]
    dtypes: Mapping[str, str]
    fill: str
    seed: str
    output: str
    index: tuple[str, ...]
    expected: str
    got: str
    columns: tuple[str, ...]
    slices: tuple[SliceRow, ...]
    minimised_from: Mapping[str, str]
    replay: str
    same_as: GatePage | None = None
    """An earlier gate that fails for the same reason; this one is folded away."""


def evidence(
    gate: str,
    hard: bool,
    document: Mapping[str, Any],
    verdict_name: str,
    *,
    same_as: GatePage | None = None,
) -> Evidence:
    """The counterexample of a gate; ``verdict_name`` is the file that the replay command reads."""
    page = BY_ID[GateId(gate)]
    case = _mapping(document.get("case"))
    slices = [_mapping(one) for one in _list(document.get("slices"))]
    rows = tuple(_slice(one) for one in slices)
    return Evidence(
        page=page,
        hard=hard,
        detail=strip_control(_text(document.get("detail"))),
        label=one_line(_text(case.get("label"))),
        dims=_texts(case.get("dims")),
        dtypes=_texts(case.get("dtypes")),
        fill=one_line(_text(case.get("fill"))),
        seed=_text(case.get("seed")),
        output=one_line(_text(document.get("output")), 40),
        index=_tuple(document.get("index")),
        expected=one_line(_text(document.get("expected"))),
        got=one_line(_text(document.get("got"))),
        columns=_columns(slices, max((len(row.values) for row in rows), default=0)),
        slices=rows,
        minimised_from=_texts(document.get("minimised_from")),
        replay=python_command("-m", "verifier", "replay", verdict_name, "--gate", page.id),
        same_as=same_as,
    )


def _columns(slices: Sequence[Mapping[str, Any]], width: int) -> tuple[str, ...]:
    """Indices, where all rows start at the same one; else offsets from each row's own start."""
    starts = {tuple(_list(one.get("start"))) for one in slices}
    start = starts.pop() if len(starts) == 1 else ()
    if not start or not all(isinstance(at, int) for at in start):
        return tuple(f"+{offset}" for offset in range(width))
    head = "".join(f"{at}, " for at in start[:-1])
    return tuple(f"[{head}{start[-1] + offset}]" for offset in range(width))


def _slice(document: Mapping[str, Any]) -> SliceRow:
    name = one_line(_text(document.get("name")), 60)
    values = tuple(one_line(value, 40) for value in _tuple(document.get("values"))[:VALUES_SHOWN])
    dtype = one_line(_text(document.get("dtype")), 20)
    return SliceRow(name, dtype, _tuple(document.get("shape")), values, name.startswith("got"))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _tuple(value: object) -> tuple[str, ...]:
    return tuple(one_line(str(one), 40) for one in _list(value))


def _texts(value: object) -> Mapping[str, str]:
    items: Iterable[tuple[str, Any]] = _mapping(value).items()
    return {one_line(str(name), 40): one_line(str(one), 40) for name, one in items}
