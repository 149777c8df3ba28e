"""In the host: what each launch runs, as something that two engines can agree on.

Triton's interpreter runs the text of a kernel, and its compiler compiles that text. So a kernel is
its text here, with the texts and values that the names in it stand for. Whatever keeps the
interpreter from running just that shows as another program.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import torch

from verifier.candidate.identity import code_told
from verifier.candidate.witness import LOWEST_ADDRESS, is_from_triton

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
_DEF: Final = re.compile(r"^def\s+\w+\s*\(", re.MULTILINE)
_OWN: Final = {"fn", "rewriter", "kwargs", "pre_run_hooks", "arg_names"}
"""What an interpreted function holds, and nothing else: more could be functions of its own."""

_REWRITTEN: Final[dict[int, tuple[Any, CodeType, str]]] = {}
"""What the interpreter runs in place of a function, its code, and the text that it was made of."""


def follow(rewriter: Any) -> None:
    """For good: remember what the interpreter's rewriter of functions makes, and of what text."""
    rewrite, transform, read = rewriter.rewrite_ast, rewriter._transform_ast, list[str]()

    @functools.wraps(transform)
    def read_text(self: Any, text: str) -> Any:
        read[:] = [text]
        return transform(self, text)

    @functools.wraps(rewrite)
    def rewritten(self: Any) -> Any:
        read.clear()
        made = rewrite(self)
        _REWRITTEN[id(made)] = made, made.__code__, "".join(read)
        return made

    rewriter.rewrite_ast, rewriter._transform_ast = rewritten, read_text


def program(function: Any) -> str:
    """A digest of all that a launch of this kernel computes by, but for its arguments."""
    return hashlib.sha256("\n".join(_function(function, set())).encode()).hexdigest()[:24]


def settings(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A digest of the plain values among a launch's arguments: numbers, flags and constants."""
    names = list(getattr(function, "arg_names", ()))
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    told = [f"{name}={_setting(given[name])}" for name in names if name in given]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:24]


def _setting(value: Any) -> str:
    if type(value).__name__ == "constexpr":
        return _setting(value.value)
    is_address = isinstance(value, int) and abs(value) >= LOWEST_ADDRESS
    plain = isinstance(value, (*_PLAIN, torch.dtype)) and not is_address
    return repr(value) if plain else ""


def _function(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    plain = _unwrapped(function)
    if not isinstance(plain, FunctionType):
        yield type(plain).__qualname__
    elif is_from_triton(function):
        yield f"{plain.__module__}.{plain.__qualname__}"
    else:
        yield plain.__qualname__
        text = _text(function)
        yield from code_told(plain.__code__) if text is None else [text]
        names = _loaded(plain.__code__) if text is None else _spoken(text)
        yield from _named(plain, names, seen)


def _unwrapped(function: Any) -> Any:
    for _ in range(8):  # wrappers of Triton's keep what they wrap there
        if isinstance(function, FunctionType) or not hasattr(function, "fn"):
            break
        function = function.fn
    return function


def _named(plain: FunctionType, names: Iterable[str], seen: set[int]) -> Iterator[str]:
    for value in (plain.__defaults__, plain.__kwdefaults__):
        yield from _value(value, seen)
    cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False))
    for name in sorted(names):
        if name in cells:
            yield f"{name}:"
            yield from _value(_held(cells[name]), seen)
        elif name in plain.__globals__:
            yield f"{name}:"
            yield from _value(plain.__globals__[name], seen)


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _value(value: Any, seen: set[int]) -> Iterator[str]:
    """Numbers and texts, constexprs and functions; of anything else, what it is."""
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _value(item, seen)
    elif isinstance(value, dict):
        yield from _value(list(value.items()), seen)
    elif type(value).__name__ == "constexpr":
        yield from _value(value.value, seen)
    elif isinstance(value, ModuleType):
        known = sys.modules.get(value.__name__) is value
        yield f"module {value.__name__}" if known else "a module of its own"
    elif isinstance(value, FunctionType) or hasattr(value, "fn"):
        yield from _function(value, seen)
    else:
        yield type(value).__qualname__


def _text(function: Any) -> str | None:
    """The text that runs, or is compiled, from its 'def' on; None for what Python itself runs."""
    if type(function).__name__ == "InterpretedFunction":
        return _from_def(_interpreted(function))
    text = getattr(function, "src", None)
    return _from_def(text) if isinstance(text, str) else None


def _interpreted(function: Any) -> str:
    kind = type(function)
    if set(vars(function)) - _OWN or function.pre_run_hooks:
        return "something of its own"
    made, code, text = _REWRITTEN.get(id(kind.rewrite(function)), (None, None, ""))
    runs = kind.rewritten_fn.get(function.fn)
    if made is None or runs is not made or made.__code__ is not code:
        return "something else than its text"
    return text


def _from_def(text: str) -> str:
    found = _DEF.search(text := textwrap.dedent(text))
    return text[found.start() :].rstrip() if found else text


@functools.lru_cache(maxsize=256)
def _spoken(text: str) -> frozenset[str]:
    """The names in a text that stand by themselves, and not for a part of something."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _loaded(code: CodeType) -> frozenset[str]:
    """The same of code."""
    own = (step.argval for step in dis.get_instructions(code) if step.opname in _LOADS)
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(own).union(*map(_loaded, inner))


_LOADS: Final = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"}
