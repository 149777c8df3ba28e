"""In the host: which tensors certainly hold nothing of any call's data.

What an operation without a dependent operand makes is free of data, for as long as nothing that
depends on data is written into it. A table of angles, made when it is first needed, is. Everything
that was not seen to be made so counts as dependent: arguments, what a launch can reach, what
earlier calls kept of either, memory of numpy's. Numbers that Python has read from a tensor are not
followed, nor what is written past torch: whoever does so could compute out of torch's sight as
well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from verifier.candidate.witness import LOWEST_ADDRESS, Range

_aten: Final = torch.ops.aten
_SHAPED: Final = frozenset(
    {
        _aten.empty_like.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
        _aten.zeros_like.default,
        _aten.new_zeros.default,
        _aten.ones_like.default,
        _aten.new_ones.default,
        _aten.full_like.default,
        _aten.new_full.default,
    }
)
"""They ask a tensor for its shape, not for its values."""
_PLAIN: Final = (
    int,
    float,
    complex,
    str,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
_LEAST: Final = 1024
_WORDS: Final = (torch.int64, torch.uint64)
"""Tables of pointers are made of them."""


class Free:
    """The storages that are free of data, by weak references: while one is held, no other storage
    gets the same key."""

    def __init__(self) -> None:
        self._storages: dict[int, Any] = {}
        self._most = _LEAST

    def operation(self, func: Any, values: Sequence[Any]) -> bool:
        """Whether nothing that this operation works on depends on data; to be asked before it is
        done. What else it writes into is free no more. Drawing random numbers is work."""
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        free = not drawn and (func in _SHAPED or self._all(values))
        if not free and func._schema.is_mutable:
            self._forget(values)
        return free

    def made(self, result: Any) -> None:
        """An operation that was free gave this."""
        if isinstance(result, tuple | list):
            for item in result:
                self.made(item)
        elif isinstance(result, torch.Tensor):
            key = _key(result)
            if key and key not in self._storages:
                weak: Any = StorageWeakRef(result.untyped_storage())  # type: ignore[no-untyped-call]
                self._storages[key] = weak
                self._tidy()

    def launched(self, given: Sequence[Any], arguments: Sequence[Range]) -> None:
        """A launch may write data to all that it can reach: to anything, if it is handed what may
        be, or hold, the address of something else. The call's ``arguments`` hold none."""
        if not self._storages:
            return
        if any(_leads_on(value, arguments) for value in given):
            self._storages.clear()
        self._forget(given)

    def _all(self, values: Sequence[Any]) -> bool:
        return all(map(self._has, values))

    def _has(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return _key(value) in self._storages
        return self._all(value) if isinstance(value, tuple | list) else isinstance(value, _PLAIN)

    def _forget(self, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self._storages.pop(_key(value), None)
            elif isinstance(value, tuple | list):
                self._forget(value)
            elif hasattr(value, "base"):  # descriptors of Triton's
                self._forget([value.base])

    def _tidy(self) -> None:
        """Once in a while, leave out what is gone."""
        if len(self._storages) > self._most:
            alive = {key: weak for key, weak in self._storages.items() if not weak.expired()}
            self._storages, self._most = alive, max(_LEAST, 2 * len(alive))


def _key(tensor: torch.Tensor) -> int:
    """What tells a storage from all others; 0 if there is none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return 0


def _leads_on(value: Any, arguments: Sequence[Range]) -> bool:
    if isinstance(value, torch.Tensor):
        pointers = value.dtype in _WORDS
        return pointers and not any(s <= value.data_ptr() < e for s, e in arguments)
    if isinstance(value, tuple | list):
        return any(_leads_on(item, arguments) for item in value)
    if isinstance(value, int):
        return value >= LOWEST_ADDRESS
    if hasattr(value, "base"):
        return _leads_on(value.base, arguments)
    return not isinstance(value, _PLAIN)
