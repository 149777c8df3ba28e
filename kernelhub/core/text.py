"""Text of unknown origin made fit for PostgreSQL, which stores neither NUL nor lone surrogates."""

from __future__ import annotations

from typing import Any, Final

_UNSTORABLE: Final = {0: "\\x00", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def storable(value: Any) -> Any:
    """The JSON value with NUL written as ``\\x00`` and lone surrogates as U+FFFD."""
    if isinstance(value, str):
        return value.translate(_UNSTORABLE)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
