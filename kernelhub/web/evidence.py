"""A counterexample as the page shows it. The documents come from nodes, so nothing is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelhub.web.catalogue import BY_ID, GatePage
from kernelhub.web.commands import python_command
from kernelhub.web.text import one_line, strip_control
from verifier.records import GateId
from verifier.wording import same_value, value_text

VALUES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A tensor of which a few values are shown."""

    name: str
    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """``wrong``: it came out other than expected."""

    text: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One index with the value of each tensor there: a row, so that all of them fit a page."""

    index: str
    values: tuple[Value, ...]
    offending: bool


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
    columns: tuple[Column, ...]
    places: tuple[Place, ...]
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
        columns=tuple(_column(one) for one in slices),
        places=_places(slices, _list(document.get("index"))),
        minimised_from=_texts(document.get("minimised_from")),
        replay=python_command("-m", "verifier", "replay", verdict_name, "--gate", page.id),
        same_as=same_as,
    )


def _column(document: Mapping[str, Any]) -> Column:
    name = one_line(_text(document.get("name")), 60)
    return Column(name, _dtype(document), _tuple(document.get("shape")))


def _dtype(document: Mapping[str, Any]) -> str:
    return one_line(_text(document.get("dtype")), 20)


def _places(slices: Sequence[Mapping[str, Any]], index: Sequence[Any]) -> tuple[Place, ...]:
    """The rows of the table, at most VALUES_SHOWN of them, with the offending one among them."""
    count = max((len(_list(one.get("values"))) for one in slices), default=0)
    at = _offset(slices, index)
    first = max(0, min((at or 0) - VALUES_SHOWN // 2, count - VALUES_SHOWN))
    names = _indices(slices, count)
    return tuple(
        Place(names[row], _values(slices, row, row == at), row == at)
        for row in range(first, min(count, first + VALUES_SHOWN))
    )


def _offset(slices: Sequence[Mapping[str, Any]], index: Sequence[Any]) -> int | None:
    """Which value of the slices is the offending one, if they hold it."""
    for one in sorted(slices, key=lambda one: not _is_got(one)):
        start = _list(one.get("start"))
        if not start or not _whole(start) or not _whole(index):
            continue
        offset = index[-1] - start[-1] if list(index[:-1]) == list(start[:-1]) else -1
        if 0 <= offset < len(_list(one.get("values"))):
            return int(offset)
    return None


def _whole(numbers: Sequence[Any]) -> bool:
    return bool(numbers) and all(isinstance(one, int) for one in numbers)


def _indices(slices: Sequence[Mapping[str, Any]], count: int) -> tuple[str, ...]:
    """Indices, where all slices start at the same one; else offsets from each one's own start."""
    starts = {tuple(_list(one.get("start"))) for one in slices}
    start = starts.pop() if len(starts) == 1 else ()
    if not _whole(start):
        return tuple(f"+{offset}" for offset in range(count))
    head = "".join(f"{at}, " for at in start[:-1])
    return tuple(f"[{head}{start[-1] + offset}]" for offset in range(count))


def _values(slices: Sequence[Mapping[str, Any]], row: int, offending: bool) -> tuple[Value, ...]:
    expected = next((_raw(one, row) for one in slices if one.get("name") == "expected"), "")
    return tuple(_value(one, row, expected, offending) for one in slices)


def _value(document: Mapping[str, Any], row: int, expected: str, offending: bool) -> Value:
    """Only what the kernel gave can be wrong: where a gate says so, or where it is not equal.

    What a tolerance would have allowed beside the offending place is not known here.
    """
    raw, dtype = _raw(document, row), _dtype(document)
    wrong = _is_got(document) and (
        offending or bool(raw and expected and not same_value(expected, raw, dtype))
    )
    return Value(value_text(raw, dtype), wrong)


def _is_got(document: Mapping[str, Any]) -> bool:
    return _text(document.get("name")).startswith("got")


def _raw(document: Mapping[str, Any], row: int) -> str:
    values = _list(document.get("values"))
    return one_line(str(values[row]), 40) if row < len(values) else ""


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
