"""Guard zones, and in the interpreter the bounds of each access."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verifier.candidate.arena import FAR_BYTES, Arena, layout_plan, layout_touched, layout_write
from verifier.candidate.bounds import Bounds, Range
from verifier.subject import Poison

MEMORY, OTHER = (0x1000, 0x1400), (0x9000, 0x9100)


def bounds(found: Range | None = None) -> Bounds:
    def find(address: int) -> Range | None:
        return found if found and found[0] <= address < found[1] else None

    return Bounds("energy", find, [(MEMORY, "input 0")])


def words(start: int, count: int) -> np.ndarray:
    return np.uint64(start) + 4 * np.arange(count, dtype=np.uint64)


def test_what_a_mask_keeps_out_is_not_reached() -> None:
    mask = np.arange(300) < 256
    assert bounds().beyond(words(0x1000, 300), mask, 4) is None
    assert bounds().beyond(words(0x1000, 300), True, 4) == 0x1400
    assert bounds().beyond(words(0x9000, 8), np.zeros(8, dtype=bool), 4) is None


def test_a_word_that_lies_inside_with_its_first_byte_alone_is_beyond() -> None:
    assert bounds().beyond(np.array([0x13FE], dtype=np.uint64), True, 4) == 0x13FE


def test_memory_of_a_tensor_that_is_found_when_it_is_reached_is_no_fault() -> None:
    both = np.concatenate([words(0x1000, 4), words(0x9000, 4)])
    assert bounds(OTHER).beyond(both, True, 4) is None
    assert bounds(OTHER).beyond(words(0x9000, 65), True, 4) == 0x9100
    assert bounds().beyond(both, True, 4) == 0x9000


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (0x1C00, "energy writes 4 bytes 2048 past the end of input 0"),
        (0x0F00, "energy writes 4 bytes 256 before the start of input 0"),
    ],
)
def test_it_is_said_how_far_off_it_was(address: int, text: str) -> None:
    assert bounds().describe("writes", address, 4) == text


def test_wide_guards_see_what_was_written_far_behind_an_input() -> None:
    args = [torch.ones(10), torch.ones(3, dtype=torch.int64)]
    arena = Arena(1 << 20)
    layout = layout_plan(args, 0, FAR_BYTES)
    layout_write(arena, layout, args, Poison.NAN)
    assert list(layout_touched(arena, layout, Poison.NAN)) == []
    arena.bytes[layout.slots[1].end + 60_000] ^= 1
    assert list(layout_touched(arena, layout, Poison.NAN)) == ["argument 1: after its end"]
    arena.close()
