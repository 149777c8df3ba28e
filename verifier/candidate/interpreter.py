"""In the host, on a machine without GPU: Triton's interpreter, adapted once before any kernel is
imported.

It says plainly what it cannot run, where Triton ends in odd errors, and it leaves out work whose
result nobody sees: Triton prepares the language again for each call of a device function (more than
half of the time of a kernel with a reduction), looks for overflow at each sum of integers for the
sake of an assertion that only ``debug`` would make (a third of what is left), and writes the table
of numpy's dtypes anew for each value.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from verifier.candidate import language, programs
from verifier.candidate.errors import UnsupportedError

Accessed = Callable[..., None]
"""Told the addresses that a kernel reads or writes, its mask, which of the two it does, and how
many bytes it reaches at each."""


def adapt(accessed: Accessed) -> None:
    """For good, in this process and its children."""
    interpreter._interpreter = _Memory(interpreter._interpreter, accessed)
    run = _LANGUAGE.around(interpreter.InterpretedFunction.run)
    interpreter.InterpretedFunction.run = _silent(run)
    warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning, r"triton\.runtime\.interpreter")
    interpreter._patch_lang = _LANGUAGE.patch
    programs.follow(interpreter.FunctionRewriter)
    _overflow_unseen(interpreter.interpreter_builder)
    interpreter._get_np_dtype = _by_name(interpreter._get_np_dtype)
    language.hasten()
    _libdevice_refuse()


def _overflow_unseen(builder: Any) -> None:
    """Integers wrap, as on a device, without a look at what nobody is told."""
    if not builder.options.debug:
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def _by_name(numpy_dtype: Callable[[Any], np.dtype[Any]]) -> Callable[[Any], np.dtype[Any]]:
    """The same, remembered: types of one name are one type, whatever object stands for them."""
    known: dict[str, np.dtype[Any]] = {}

    @functools.wraps(numpy_dtype)
    def remembered(kind: Any) -> np.dtype[Any]:
        found = known.get(kind.name)
        if found is None:
            found = known[kind.name] = numpy_dtype(kind)
        return found

    return remembered


def interpreter_changed() -> list[str]:
    """Operations of the interpreter's that its one builder has of its own, before its class's."""
    builder = interpreter.interpreter_builder
    own = vars(builder).keys() & vars(type(builder)).keys()
    return [f"patched {type(builder).__name__}.{name}" for name in sorted(own)]


class _Memory:
    """The part of the interpreter that reads and writes memory, which tells where it does."""

    def __init__(self, plain: Any, accessed: Accessed) -> None:
        self._plain, self._accessed = plain, accessed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def load(self, addresses: Any, mask: Any, *rest: Any) -> Any:
        self._accessed(addresses, mask, "reads", rest[-1].itemsize)
        return self._plain.load(addresses, mask, *rest)

    def store(self, addresses: Any, value: Any, mask: Any) -> Any:
        self._accessed(addresses, mask, "writes", value.itemsize)
        return self._plain.store(addresses, value, mask)

    def atomic_cas(self, addresses: Any, *rest: Any) -> Any:
        self._accessed(addresses, True, "changes", rest[0].itemsize)
        return self._plain.atomic_cas(addresses, *rest)

    def atomic_rmw(self, how: Any, addresses: Any, value: Any, mask: Any, *rest: Any) -> Any:
        self._accessed(addresses, mask, "changes", value.itemsize)
        return self._plain.atomic_rmw(how, addresses, value, mask, *rest)


class _Parts:
    """What Triton has put into the language once, to be put in again without searching for it."""

    def __init__(self, scope: Any) -> None:
        first: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        for owner, name, original in scope._changes:
            first.setdefault((id(owner), name), (owner, name, original))
        self._parts = [(*part, vars(part[0])[part[1]]) for part in first.values()]
        self._now = [(vars(owner).get, name) for owner, name, _, _ in self._parts]
        self._plain = [plain for _, _, plain, _ in self._parts]

    def put(self) -> bool:
        """Put it in, if all is as it was when Triton did."""
        now = [get(name, interpreter._MISSING) for get, name in self._now]
        if not all(map(operator.is_, now, self._plain)):
            return False
        for owner, name, _, ours in self._parts:
            setattr(owner, name, ours)
        return True

    def restore(self) -> None:
        for owner, name, plain, _ in self._parts:
            if plain is interpreter._MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)


class _Scope:
    """All that was put into the language during one launch, to be taken out when it ends."""

    def __init__(self) -> None:
        self.views: set[frozenset[int]] = set()
        self._parts: list[Any] = []

    def add(self, view: frozenset[int], part: Any) -> None:
        self.views.add(view)
        self._parts.append(part)

    def restore(self) -> None:
        """The latest first. Afterwards nothing is in: another launch may follow in the same one."""
        self.views.clear()
        while self._parts:
            self._parts.pop().restore()


class _Language:
    """Remembers for which views of the language Triton has put its own functions in during the
    launch in progress: they stay until the launch ends."""

    def __init__(self) -> None:
        self._patch = interpreter._patch_lang
        self._scope = _Scope()
        self._known: dict[frozenset[int], _Parts] = {}

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def launch(*args: Any, **kwargs: Any) -> Any:
            outer, self._scope = self._scope, _Scope()
            try:
                return run(*args, **kwargs)
            finally:
                self._scope.restore()
                self._scope = outer

        return launch

    def patch(self, function: Any) -> Any:
        """What ``interpreter._patch_lang`` does, or nothing where that is done, or where the
        function does not see the language: the compiler does not ask that of it either."""
        names = function.__globals__.values()
        view = frozenset(id(value) for value in names if value is tl or value is tl.core)
        if view and view not in self._scope.views:
            self._scope.add(view, self._put(view, function))
        return self._scope

    def _put(self, view: frozenset[int], function: Any) -> Any:
        """Triton's own way takes a third of a small launch."""
        known = self._known.get(view)
        if known is not None and known.put():
            return known
        scope = self._patch(function)
        self._known[view] = _Parts(scope)
        return scope


_LANGUAGE = _Language()


def _silent(launch: Callable[..., Any]) -> Callable[..., Any]:
    """A device overflows and divides by zero without a word; numpy computes here, and has some."""

    @functools.wraps(launch)
    def silent(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return launch(*args, **kwargs)

    return silent


def _libdevice_refuse() -> None:
    """libdevice functions are empty shells in the interpreter: make each say so when it is used."""
    import triton.language.extra.cuda.libdevice as cuda
    import triton.language.extra.hip.libdevice as hip
    import triton.language.extra.libdevice as generic

    for module in (generic, cuda, hip):
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_") and _is_from(value, module):
                setattr(module, name, _refusal(name, value))


def _is_from(value: Any, module: types.ModuleType) -> bool:
    return getattr(inspect.unwrap(value), "__module__", "") == module.__name__


def _refusal(name: str, shell: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(shell)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"libdevice.{name} does not exist in Triton's interpreter")

    return refuse
