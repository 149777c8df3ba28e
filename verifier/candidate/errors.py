"""In the host: what is said of a kernel's launches instead of the odd errors that they end in."""

from __future__ import annotations

from verifier.conventions.errors import UnsupportedError

__all__ = ["RefusedError", "SurroundingsError", "UnsupportedError"]


class RefusedError(Exception):
    """Triton's compiler takes the kernel for no target."""


class SurroundingsError(UnsupportedError):
    """Triton could not read or write what it needs around a kernel, which is not to blame."""
