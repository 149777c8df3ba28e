"""What can go wrong with our own machinery. Loads no torch."""

from __future__ import annotations


class InfrastructureError(RuntimeError):
    """Our machinery broke (no sandbox, forkserver gone, no memory): never the kernel's fault."""
