"""The minimiser finds the smallest shape that still fails, and spends no more than it may."""

from __future__ import annotations

from typing import Any

from verifier.contract import Contract, parse_contract
from verifier.minimise import smallest
from verifier.records import CaseRecord


def contract(dims: dict[str, Any], constraints: tuple[str, ...] = ()) -> Contract:
    return parse_contract(
        {
            "slug": "t",
            "title": "t",
            "category": "t",
            "dims": dims,
            "constraints": list(constraints),
            "inputs": [{"name": "x", "shape": list(dims), "dtype": "float32"}],
            "outputs": [{"name": "y", "shape": list(dims), "dtype": "float32"}],
        }
    )


def case(**dims: int) -> CaseRecord:
    return CaseRecord("c", dims, {"T": "float32"}, "normal", 7, {"poison": "nan"})


ROWS = contract(
    {
        "B": {"candidates": [1, 2, 8], "usual": 8},
        "H": {"candidates": [1, 3, 256, 1025], "usual": 256},
    }
)


def test_a_failure_beyond_a_block_shrinks_to_one_past_the_block() -> None:
    found = smallest(ROWS, case(B=8, H=1025), lambda c: c.dims["H"] > 128, max_trials=60)
    assert found.dims == {"B": 1, "H": 129}


def test_a_failure_at_odd_sizes_shrinks_to_the_smallest_odd_size() -> None:
    found = smallest(
        ROWS, case(B=8, H=1025), lambda c: c.dims["H"] % 2 == 1 and c.dims["H"] > 1, max_trials=60
    )
    assert found.dims == {"B": 1, "H": 3}


def test_a_failure_that_needs_two_rows_keeps_two_rows() -> None:
    found = smallest(ROWS, case(B=8, H=256), lambda c: c.dims["B"] >= 2, max_trials=60)
    assert found.dims == {"B": 2, "H": 1}


def test_everything_but_the_shape_stays() -> None:
    found = smallest(ROWS, case(B=8, H=256), lambda c: True, max_trials=60)
    assert (found.seed, found.fill, found.dtypes, found.params, found.label) == (
        7,
        "normal",
        {"T": "float32"},
        {"poison": "nan"},
        "c",
    )


def test_no_more_trials_than_allowed() -> None:
    trials: list[CaseRecord] = []

    def passes(trial: CaseRecord) -> bool:
        trials.append(trial)
        return False

    smallest(ROWS, case(B=8, H=1025), passes, max_trials=5)
    assert len(trials) == 5


def test_no_assignment_is_tried_twice() -> None:
    trials: list[tuple[int, ...]] = []

    def fails(trial: CaseRecord) -> bool:
        trials.append(tuple(trial.dims.values()))
        return trial.dims["H"] > 128

    smallest(ROWS, case(B=8, H=1025), fails, max_trials=100)
    assert len(trials) == len(set(trials))


def test_no_wall_time_left_gives_the_case_back() -> None:
    first = case(B=8, H=1025)
    assert smallest(ROWS, first, lambda c: True, max_trials=60, max_seconds=0.0) == first


def test_trials_meet_constraints_and_multiples() -> None:
    square = contract(
        {
            "M": {"candidates": [96], "usual": 96, "multiple_of": 16},
            "N": {"candidates": [96], "usual": 96},
        },
        ("M == N",),
    )
    trials: list[CaseRecord] = []

    def fails(trial: CaseRecord) -> bool:
        trials.append(trial)
        return True

    found = smallest(square, case(M=96, N=96), fails, max_trials=60)
    assert found.dims == {"M": 48, "N": 48}
    assert all(square.allows(trial.dims) for trial in trials)


def test_single_dims_shrink_by_their_own_unit() -> None:
    tiled = contract({"M": {"candidates": [96], "usual": 96, "multiple_of": 16}})
    found = smallest(tiled, case(M=96), lambda c: c.dims["M"] > 64, max_trials=60)
    assert found.dims == {"M": 80}
