"""Where the answer of a task lies that only moves data, and what such a task is made of."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from verifier.referee.moved import is_telling, lies_in
from verifier.referee.uses import uses_of

X = torch.arange(12.0).reshape(3, 4)
IDS = torch.tensor([3, 1, 2, 1])


def test_rows_are_found_in_order_whatever_lies_between() -> None:
    padded = torch.zeros(4, 9)
    padded[:, 2:5] = X.t()
    assert lies_in(X.t(), [padded])
    assert not lies_in(X.t(), [padded.flip(0), X])


def test_what_is_too_short_tells_nothing() -> None:
    assert is_telling(X)
    assert not is_telling(X[:1, :1])


@pytest.mark.parametrize(
    ("reference", "args", "computes"),
    [
        (lambda x: x.t().clone(), [X], False),
        (lambda x: torch.cat([x, x]).half(), [X], False),
        (lambda x: (x + 1).contiguous(), [X], True),
        (lambda ids: torch.sort(ids).values, [IDS], False),
        (lambda x: torch.sort(x).values, [X], True),
        (lambda x: x[5], [X], True),
    ],
)
def test_a_reference_is_what_it_is_made_of(reference: Any, args: list[Any], computes: bool) -> None:
    assert uses_of(reference, lambda: args).computes is computes


def test_bookkeeping_of_one_kind_goes_together() -> None:
    used = uses_of(lambda ids: torch.sort(ids).values, lambda: [IDS])
    assert {"sort", "argsort"} <= used.bookkeeping
    assert not used.bookkeeping & {"max", "cumsum", "bincount"}
