"""What becomes of a kernel's launches in a sandbox."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """One for each sandbox: Triton decides at import which of them it is."""

    GPU = "gpu"
    """Compiled and run."""
    INTERPRETER = "interpreter"
    """Run by Triton's interpreter, on a machine without GPU."""
    COMPILER = "compiler"
    """Compiled for a GPU that is not there, and not run."""
