"""Where the right answer of a task lies that only moves data: before its launches, and after.

Nothing tells moving by torch, numpy or Python from moving by a kernel but this: before the kernel
runs, the answer is nowhere, and afterwards it is where the kernel left it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import torch

from verifier.subject import Reply, Watched

_MAX_ROWS: Final = 64
_SHORT: Final = 2
"""Rows of fewer elements would be found anywhere."""


def lies_in(answer: torch.Tensor, memories: Iterable[torch.Tensor]) -> bool:
    """Whether one of these holds the rows of the answer, in their order, whatever lies between."""
    rows = _rows(answer)
    return any(_in_order(rows, memory) for memory in _alike(memories, answer.dtype))


def is_telling(answer: torch.Tensor) -> bool:
    """Whether there is enough of it for ``lies_in`` to mean something."""
    return answer.numel() > _SHORT and _rows(answer).shape[1] >= _SHORT


def before_launches(answer: torch.Tensor, reply: Reply) -> int | None:
    """The number of the first launch that is handed the answer, which none before it has left."""
    launches = _launches(reply)
    for number, launch in enumerate(launches):
        if lies_in(answer, launch.before):
            earlier = (memory for other in launches[:number] for memory in other.after)
            return None if lies_in(answer, earlier) else number
    return None


def after_launches(answer: torch.Tensor, reply: Reply) -> bool:
    """Whether a launch has left the answer somewhere, or has worked on the memory that was
    returned."""
    launches = _launches(reply)
    reached = {place for launch in launches for place in launch.places}
    if reply.final is None or reached & set(reply.final.places):
        return True
    return any(lies_in(answer, launch.after) for launch in launches)


def _launches(reply: Reply) -> list[Watched]:
    return [launch for launch in reply.watched if not launch.carries]


def _rows(answer: torch.Tensor) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """The bytes of the rows; of the whole where rows are short."""
    width = answer.shape[-1] if answer.dim() > 1 and answer.shape[-1] >= _SHORT else answer.numel()
    flat = answer.contiguous().reshape(-1, max(width, 1))[:_MAX_ROWS]
    raw: np.ndarray[tuple[int, int], np.dtype[np.uint8]] = flat.view(torch.uint8).numpy()
    return raw


def _alike(memories: Iterable[torch.Tensor], dtype: torch.dtype) -> Iterable[torch.Tensor]:
    return (memory for memory in memories if memory.dtype in (dtype, torch.uint8))


def _in_order(rows: np.ndarray[tuple[int, int], np.dtype[np.uint8]], memory: torch.Tensor) -> bool:
    raw, place = memory.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), 0
    for row in rows:
        found = raw.find(row.tobytes(), place)
        if found < 0:
            return False
        place = found + len(row)
    return True
