"""Blocks of rows made vast on the device, and a few rows read back."""

from __future__ import annotations

import pytest
import torch

from verifier.vast import Vast

BLOCK = torch.arange(30.0).reshape(2, 3, 5)


def vast(length: int = 11, rows: tuple[int, ...] = (0, 3, 10)) -> Vast:
    return Vast(length, rows, axes=(1, None), out_axes=(1,))


@pytest.mark.parametrize("length", [3, 4, 6, 11])
def test_a_block_is_repeated_along_its_axis_and_cut_off(length: int) -> None:
    made, number = vast(length).expand([BLOCK, 7])
    assert number == 7
    assert torch.equal(made, BLOCK[:, torch.arange(length) % 3])


def test_the_rows_that_come_back_are_what_the_small_call_gives() -> None:
    one = vast()
    [rows] = one.pick([one.expand([BLOCK, 7])[0]])
    expected, _ = one.of_rows([BLOCK, 7])
    assert isinstance(expected, torch.Tensor)
    assert torch.equal(rows, expected)


def test_outputs_of_another_length_or_number_are_refused() -> None:
    with pytest.raises(ValueError, match="has not 11 rows"):
        vast().pick([torch.ones(2, 10, 5)])
    with pytest.raises(ValueError, match="0 outputs"):
        vast().pick([])


def test_it_travels_as_json() -> None:
    assert Vast.from_json(vast().to_json()) == vast()
