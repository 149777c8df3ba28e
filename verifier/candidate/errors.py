"""In the host: what is said of a kernel's launches instead of the odd errors that they end in."""

from __future__ import annotations

from verifier.conventions.errors import UnsupportedError

__all__ = ["RefusedError", "UnsupportedError"]


class RefusedError(Exception):
    """Triton's compiler takes the kernel for no target."""
