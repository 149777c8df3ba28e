"""What a reference will need, told before it is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from verifier.contract import Dim, load_task
from verifier.referee.bench import load_reference
from verifier.referee.weight import measure_growth

ROOT = Path(__file__).resolve().parents[2]


def test_a_quadratic_reference_is_seen_to_be_quadratic() -> None:
    task = load_task(ROOT / "benchmarks/fuzzoracle/tasks/attention")
    growth = measure_growth(task.contract, load_reference(task))
    assert growth is not None
    long = {**task.contract.usual_dims(), "M": 1 << 16, "N": 1 << 16}
    assert growth.elements(long) == 1 << 32


def test_a_row_wise_reference_is_as_great_as_its_output() -> None:
    task = load_task(ROOT / "tests/gates/tasks/row_softmax")
    growth = measure_growth(task.contract, load_reference(task))
    assert growth is not None
    sizes = dict.fromkeys(task.contract.dims, 1000)
    assert growth.elements(sizes) == 1_000_000


def test_a_reference_that_goes_another_way_at_another_size_is_not_foretold() -> None:
    task = load_task(ROOT / "tests/gates/tasks/row_softmax")

    def moody(x: torch.Tensor) -> torch.Tensor:
        return x.exp().sum(-1) if x.shape[-1] > 8 else x

    dims = dict.fromkeys(task.contract.dims, Dim(candidates=(8, 16), usual=8))
    assert measure_growth(replace(task.contract, dims=dims), moody) is None
