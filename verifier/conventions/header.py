"""The header of a .cu file: comment lines that say how its kernels are launched.

::

    // @launch softmax<T><<<R, 256, 4 * 256>>>(x, out, R, N)
    // @temp   partial: float32[R, cdiv(N, 256)]
    // @dtypes T: float32, float16

Text in, frozen records out; nothing here compiles or runs anything. See docs/conventions.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from verifier.conventions.errors import EntryError
from verifier.expressions import Expression, ExpressionError, names

MAX_LAUNCHES: Final = 64
MAX_TEMPS: Final = 16

_LINE: Final = re.compile(r"^[ \t]*//[ \t]*@(\w+)[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_LAUNCH: Final = re.compile(r"^(.+?)\s*<<<(.*)>>>\s*\((.*)\)\s*;?$")
_NAME: Final = re.compile(r"^[A-Za-z_]\w*(?:::\w+)*(?:<.*>)?$")
_TEMP: Final = re.compile(r"^(\w+)\s*:\s*(\w+)\s*\[(.*)\]$")
_DTYPES: Final = re.compile(r"^(\w+)\s*:\s*(.+)$")
_C_DIVISION: Final = re.compile(r"(?<!/)/(?!/)")
_CONSTANT: Final = re.compile(
    r"^[ \t]*(?:#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)[uUlL]*\)?"
    r"|(?:static[ \t]+|__device__[ \t]+)*(?:constexpr|const)[ \t]+[\w \t]*?\b(\w+)[ \t]*="
    r"[ \t]*(\d+)[uUlL]*[ \t]*;)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """One launch: the kernel's C++ name, the sizes as expressions, what it is passed."""

    kernel: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Temp:
    """Memory that lives as long as a call."""

    name: str
    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """Everything that a .cu file says about its own call."""

    launches: tuple[LaunchLine, ...]
    temps: tuple[Temp, ...] = ()
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    """Integers that the source defines, for use in expressions."""


def read_header(source: str) -> Header:
    """The header of a source. Raises EntryError with the line that does not fit."""
    launches: list[LaunchLine] = []
    temps: list[Temp] = []
    dtypes: dict[str, tuple[str, ...]] = {}
    for number, word, rest in _lines(source):
        try:
            match word:
                case "launch":
                    launches.append(_launch(rest))
                case "temp":
                    temps.append(_temp(rest))
                case "dtypes":
                    dtypes |= _dtypes(rest)
                case _:
                    raise EntryError(f"unknown word '@{word}'; known are launch, temp, dtypes")
        except (EntryError, ExpressionError) as error:
            raise EntryError(f"line {number}: {error}") from None
    if not launches:
        raise EntryError(
            "the source does not say how to launch it; add a line such as "
            "'// @launch my_kernel<<<cdiv(N, 256), 256>>>(x, out, N)'"
        )
    if len(launches) > MAX_LAUNCHES or len(temps) > MAX_TEMPS:
        raise EntryError(f"at most {MAX_LAUNCHES} launches and {MAX_TEMPS} temps are allowed")
    return Header(tuple(launches), tuple(temps), dtypes, integer_constants(source))


def _lines(source: str) -> Iterator[tuple[int, str, str]]:
    for found in _LINE.finditer(source):
        yield source.count("\n", 0, found.start(1)) + 1, found[1], found[2]


def _launch(text: str) -> LaunchLine:
    found = _LAUNCH.match(text)
    if found is None or not _NAME.match(found[1]):
        raise EntryError(f"'{text}' does not read 'name<<<grid, block, shared>>>(arguments)'")
    sizes = split(found[2])
    if not 2 <= len(sizes) <= 3:
        raise EntryError("between <<< and >>> stand grid, block and, if any, shared bytes")
    grid, block = _sizes(sizes[0]), _sizes(sizes[1])
    shared = _expression(sizes[2]) if len(sizes) == 3 else 0
    return LaunchLine(found[1], grid, block, shared, tuple(split(found[3])))


def _sizes(text: str) -> tuple[Expression, ...]:
    """One to three sizes: ``N``, ``(N, M)``, ``dim3(N, M)``."""
    inner = re.fullmatch(r"(?:dim3)?\((.*)\)", text)
    parts = split(inner[1]) if inner and _closes_last(text) else [text]
    if not 1 <= len(parts) <= 3:
        raise EntryError(f"'{text}' is not one to three sizes")
    return tuple(_expression(part) for part in parts)


def _closes_last(text: str) -> bool:
    """Whether the first parenthesis is closed by the last character: not so in ``(a) * (b)``."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == ")" and depth == 0:
            return place == len(text) - 1
    return False


def _temp(text: str) -> Temp:
    found = _TEMP.match(text)
    if found is None:
        raise EntryError(f"'{text}' does not read 'name: dtype[sizes]'")
    return Temp(found[1], found[2], tuple(_expression(part) for part in split(found[3])))


def _dtypes(text: str) -> dict[str, tuple[str, ...]]:
    found = _DTYPES.match(text)
    if found is None:
        raise EntryError(f"'{text}' does not read 'T: float32, float16'")
    return {found[1]: tuple(split(found[2]))}


def _expression(text: str) -> Expression:
    """An integer or an expression over names. Raises ExpressionError if it is neither."""
    if text.isdecimal():
        return int(text)
    text = _C_DIVISION.sub("//", text)
    names(text)
    return text


def split(text: str) -> list[str]:
    """Parts between commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def integer_constants(source: str) -> dict[str, int]:
    """Integers that a source defines: ``#define N 4``, ``constexpr int N = 4;``."""
    found = _CONSTANT.finditer(source)
    return {(one[1] or one[3]): int(one[2] or one[4]) for one in found}
