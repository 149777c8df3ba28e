"""What every convention gets, and what it makes of it: a callable for the task's arguments.

A convention is a module with ``load(path, setup)``. The untrusted host imports all of them before
any kernel and picks by name; the referee never imports one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch

Kernel: TypeAlias = Callable[..., Any]
"""Takes the arguments of the contract in call order; returns a tensor or a tuple of tensors."""

Grid: TypeAlias = tuple[int, int, int]


class Launch(Protocol):
    """Runs one launch under the eyes of the stage: it may be written down, watched or left out."""

    def __call__(
        self, name: str, grid: Grid, args: Sequence[Any], run: Callable[[], None]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Setup:
    """How one kernel is to be called. ``details`` is what ``choose.details`` made of the contract,
    in plain JSON; ``device`` is where the arguments will lie."""

    entry: str
    details: Mapping[str, Any]
    device: torch.device
    launch: Launch


class Convention(Protocol):
    """A module of this package."""

    FILE: str
    """Name under which the source is laid into the scratch folder."""

    def load(self, path: Path, setup: Setup) -> Kernel:
        """Import or compile. Raises EntryError, UnsupportedError, or whatever the source raises."""
