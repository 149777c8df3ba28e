"""Which torch operations the reference itself is made of.

What wrappers may do with torch, for it is no work, may be all the work that there is in a task.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from verifier.referee.follower import Follower
from verifier.subject import BOOKKEEPING, PLUMBING, QUIET, Arg

_FAMILIES: Final = (
    {"sort", "argsort", "unique_consecutive"},
    {"max", "amax", "min"},
    {"sub", "diff"},
    {"bincount"},
    {"cumsum"},
)
"""Bookkeeping of one kind: one does the other's work, or most of it."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The operations of one reference, by their names without 'aten::', views left out."""

    plumbing: frozenset[str]
    on_integers: frozenset[str]
    """Bookkeeping, done on integers alone."""
    computes: bool
    """It does something else, too."""

    @property
    def bookkeeping(self) -> frozenset[str]:
        """All bookkeeping of the kinds that are done on integers."""
        kinds = (kind for kind in _FAMILIES if kind & self.on_integers)
        return frozenset().union(*kinds)


_KNOWN: Final[weakref.WeakKeyDictionary[Callable[..., Any], Uses]] = weakref.WeakKeyDictionary()


def uses_of(reference: Callable[..., Any], args: Callable[[], Sequence[Arg]]) -> Uses:
    """What a reference uses for such arguments, which are its own; found out once. A reference that
    refuses them is one that computes."""
    if reference not in _KNOWN:
        _KNOWN[reference] = _uses(reference, args())
    return _KNOWN[reference]


def _uses(reference: Callable[..., Any], args: Sequence[Arg]) -> Uses:
    with _Listening() as heard:
        try:
            reference(*args)
        except Exception:  # noqa: BLE001 - whatever a reference raises, it is no mere plumbing
            heard.others.add("exception")
    return Uses(frozenset(heard.plumbing), frozenset(heard.on_integers), bool(heard.others))


class _Listening(Follower):
    """Takes down each operation's name by what it is."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.plumbing: set[str] = set()
        self.on_integers: set[str] = set()
        self.others: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name not in QUIET and not _is_view(func):
            self._heard(name.removeprefix("aten::"), (args, kwargs, result))
        return result

    def _heard(self, name: str, values: Any) -> None:
        if name in PLUMBING:
            self.plumbing.add(name)
        elif name in BOOKKEEPING and not any(map(_is_real, tree_leaves(values))):
            self.on_integers.add(name)
        else:
            self.others.add(name)


def _is_view(func: Any) -> bool:
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())
