"""In the host: what a kernel is, as text: its code, and the values and functions that it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, Final

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))


def identity(function: Any) -> str:
    """Changes with anything that the kernel would compute otherwise by, but for its arguments."""
    return "\n".join(_function(function, set()))


def _function(function: Any, seen: set[int]) -> Iterator[str]:
    plain = getattr(function, "fn", function)  # Triton's wrappers keep the function there
    if not isinstance(plain, FunctionType):
        yield type(plain).__qualname__
        return
    if id(plain) in seen:
        return
    seen.add(id(plain))
    yield plain.__qualname__
    yield from code_told(plain.__code__)
    for value in (plain.__defaults__, plain.__kwdefaults__):
        yield from _value(value, seen)
    for cell in plain.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield from _value(cell.cell_contents, seen)
    for name in sorted(_names(plain.__code__)):
        if name in plain.__globals__:
            yield from _value(plain.__globals__[name], seen)


def code_told(code: CodeType) -> Iterator[str]:
    """What a piece of code does."""
    yield code.co_code.hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_told(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))  # in an order that no process chooses
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _value(value: Any, seen: set[int]) -> Iterator[str]:
    """Numbers and texts, constexprs and functions; modules and the like are what they are."""
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _value(item, seen)
    elif isinstance(value, dict):
        yield from _value(list(value.items()), seen)
    elif isinstance(value, FunctionType) or isinstance(getattr(value, "fn", None), FunctionType):
        yield from _function(value, seen)
    elif type(value).__name__ == "constexpr":
        yield from _value(value.value, seen)
