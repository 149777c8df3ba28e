"""Tensors beyond 2**31 elements: made on the device from a small block, read back in a few rows.

Neither would fit through shared memory. Where the rows of an op are independent, a block of rows
repeated is as good a test of its offsets as fresh values everywhere, provided that the block's
length has nothing in common with what wraps around: it is a prime number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_Arg = torch.Tensor | int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Vast:
    """How to blow up the arguments of one call along their axis of rows, and which rows of its
    outputs to keep.

    ``axes`` and ``out_axes`` name the axis of rows of each argument and output; None leaves an
    argument as it is. ``length`` is the number of rows then, ``rows`` are those that come back.
    """

    length: int
    rows: tuple[int, ...]
    axes: tuple[int | None, ...]
    out_axes: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {
            "length": self.length,
            "rows": list(self.rows),
            "axes": list(self.axes),
            "out_axes": list(self.out_axes),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Vast:
        """Raises KeyError for what is missing."""
        return cls(
            length=int(body["length"]),
            rows=tuple(map(int, body["rows"])),
            axes=tuple(None if axis is None else int(axis) for axis in body["axes"]),
            out_axes=tuple(map(int, body["out_axes"])),
        )

    def expand(self, args: Sequence[Any]) -> list[Any]:
        """The arguments, each with ``length`` rows: its own ones again and again."""
        pairs = zip(args, self.axes, strict=True)
        return [arg if axis is None else _repeated(arg, axis, self.length) for arg, axis in pairs]

    def of_rows(self, args: Sequence[_Arg]) -> list[_Arg]:
        """The arguments of the small call that must give the rows which come back."""
        return [
            arg
            if axis is None or not isinstance(arg, torch.Tensor)
            else arg.index_select(axis, torch.tensor(self.rows) % arg.shape[axis])
            for arg, axis in zip(args, self.axes, strict=True)
        ]

    def pick(self, outputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The rows of the outputs. Raises ValueError where there are other rows than were asked."""
        if len(outputs) != len(self.out_axes):
            raise ValueError(f"{len(outputs)} outputs, not {len(self.out_axes)}")
        pairs = zip(outputs, self.out_axes, strict=True)
        return tuple(self._picked(output, axis) for output, axis in pairs)

    def _picked(self, output: torch.Tensor, axis: int) -> torch.Tensor:
        if output.ndim <= axis or output.shape[axis] != self.length:
            raise ValueError(f"an output of shape {list(output.shape)} has not {self.length} rows")
        return torch.cat([output.narrow(axis, row, 1) for row in self.rows], axis)


def _repeated(block: torch.Tensor, axis: int, length: int) -> torch.Tensor:
    """``length`` rows of a block of fewer, contiguous."""
    rows = block.shape[axis]
    times, rest = divmod(length, rows)
    shape = [*block.shape[:axis], length, *block.shape[axis + 1 :]]
    made = torch.empty(shape, dtype=block.dtype, device=block.device)
    body = made.narrow(axis, 0, times * rows)
    body.view(*shape[:axis], times, rows, *shape[axis + 1 :]).copy_(block.unsqueeze(axis))
    made.narrow(axis, times * rows, rest).copy_(block.narrow(axis, 0, rest))
    return made
