"""In the host: torch operations that were done where the stage, a dispatch mode, did not see them.

A mode belongs to one thread and can be taken off. Torch's profiler sees every operation of every
thread, and what each was done within. So the stage marks whatever it sees, and what computes
outside of all marks was hidden. So is what an operation does that somebody has put another in the
place of.
"""

from __future__ import annotations

import functools
import secrets
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch
from torch._C._profiler import _EventType, _RecordFunctionFast

from verifier.subject import PLUMBING, QUIET

_ATEN: Final = "aten::"
COMPILED: Final = "torch.compile"
_REGION: Final = "Torch-Compiled Region"
"""How dynamo's evaluation of frames marks what it has compiled, wherever a profiler looks on."""
_TOO_DEEP: Final = "more than can be looked through"
BLINDED: Final = "whatever it likes, for it switched off what sees it"
_END: Final = "end"
_ENDS: Final = 2
_SWITCHES: Final = ("_enable_record_function", "_toggle_collection_dynamic")
"""Functions of torch's that make its profiler see less."""
_TOUCHED: Final[list[str]] = []
"""Those that were called since a kernel was loaded."""


class Mark:
    """What the operations that a stage sees are found by, in one call."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)

    def around(self, func: Any) -> Any:
        """A context for one operation."""
        return _RecordFunctionFast(f"{self._token} {_full_name(func._schema)}")

    def seen(self, name: str) -> str:
        """The operation that an event of this name is a mark around; '' if it is none."""
        token, _, operation = name.partition(" ")
        return operation if token == self._token else ""

    def set(self) -> None:
        """At both ends of a call: between them nobody stopped the profiler."""
        with _RecordFunctionFast(f"{self._token} {_END}"):
            pass

    def is_blinded(self, events: Iterable[Any]) -> bool:
        """Whether something kept the profiler from seeing all of the call."""
        ends = sum(self.seen(event.name) == _END for event in events)
        return ends != _ENDS or bool(_TOUCHED)

    def hidden(self, events: Iterable[Any]) -> Iterator[str]:
        """Names of operations that compute, in or below these events, and that no mark explains."""
        try:
            yield from self._hidden(events, "")
        except RecursionError:
            yield _TOO_DEEP

    def _hidden(self, events: Iterable[Any], own: str) -> Iterator[str]:
        """``own`` is the operation whose mark the events lie in, what it does is its own."""
        for event in events:
            name = event.name
            seen = self.seen(name)
            if seen:
                yield from (f"{seen}, replaced",) if _is_replaced(seen) else ()
                yield from self._hidden(event.children, seen.partition(".")[0])
            elif name.startswith(_REGION):
                yield COMPILED
            elif _is_transparent(event) or self._leads_to_a_mark(event):
                yield from self._hidden(() if name == own else event.children, "")
            elif name != own:
                yield name

    def _leads_to_a_mark(self, event: Any) -> bool:
        return any(self.seen(one.name) or self._leads_to_a_mark(one) for one in event.children)


def _is_transparent(event: Any) -> bool:
    """Whether what an event does shows in its inside alone: it computes nothing."""
    name = event.name
    if event.tag != _EventType.TorchOp or not name.startswith(_ATEN):
        return True
    return _is_harmless(name)


@functools.cache
def _is_harmless(name: str) -> bool:
    """What carries data about, is no work at all, or is made of other operations."""
    if name.removeprefix(_ATEN) in PLUMBING or name in QUIET:
        return True
    forms = [form for form in torch._C._jit_get_schemas_for_operator(name) if _is_torchs(form)]
    return all(map(_is_view, forms)) or all(map(_is_composite, forms))


def _is_view(form: Any) -> bool:
    """Some return value aliases an argument that is not written to."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in form.returns)


def _full_name(form: Any) -> str:
    return f"{form.name}.{form.overload_name}" if form.overload_name else str(form.name)


def _is_torchs(form: Any) -> bool:
    """Whether tensors are dispatched on it; others are TorchScript's, for lists and numbers."""
    try:
        return bool(torch._C._dispatch_has_kernel(_full_name(form)))
    except RuntimeError:
        return False


def _is_composite(form: Any) -> bool:
    key = "CompositeImplicitAutograd"
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(_full_name(form), key))


_WORKING: Final = ("CPU", "CUDA", "Composite", "Autograd", "ADInplace", "BackendSelect")
"""The dispatch keys, or how they begin, whose functions work when a kernel is called."""

_FUNCTIONS: Final[dict[str, int]] = {}
"""For each operation of torch's, what it is done by, before any kernel is loaded."""


def functions_remember() -> None:
    """Before a kernel is loaded."""
    _switches_guard()
    names = torch._C._dispatch_get_all_op_names()
    _FUNCTIONS.update((name, _functions(name)) for name in names if name.startswith(_ATEN))


def _switches_guard() -> None:
    """Whoever blinds the profiler is known for it, and does not."""
    for name in _SWITCHES:
        plain = getattr(torch._C._autograd, name)
        for module in (m for key, m in sys.modules.items() if key.startswith("torch")):
            if vars(module).get(name) is plain:
                setattr(module, name, functools.partial(_touched, name))


def _touched(name: str, *args: Any) -> None:
    _TOUCHED.append(name)


def _functions(name: str) -> int:
    lines = torch._C._dispatch_dump(name).splitlines()
    return hash(tuple(line for line in lines if line.startswith(_WORKING)))


def _is_replaced(name: str) -> bool:
    """Whether an operation of torch's is done by something else since."""
    return name in _FUNCTIONS and _FUNCTIONS[name] != _functions(name)
