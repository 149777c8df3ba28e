"""Calibration: thresholds fitted on one half of the cases and judged on the other."""

from __future__ import annotations

import json

import pytest

from benchmarks.fuzzoracle.suite import HERE
from verifier.calibrate import (
    ATOLS,
    FACTORS,
    Calibration,
    calibrate,
    read_index,
)
from verifier.contract import load_task
from verifier.fuzz import Plant
from verifier.session import Session


def test_the_replica_declares_a_tolerance_for_each_entry() -> None:
    entries = read_index(HERE, "p1_replica")
    assert len(entries) == 26
    assert all(entry.declared for entry in entries)


@pytest.fixture(scope="module")
def study(verifier_session: Session) -> Calibration:
    return calibrate(verifier_session, HERE, "p1_replica", seed=1, iterations=14)


def test_the_default_rule_flags_every_bug_and_no_control(study: Calibration) -> None:
    point = next(p for p in study.points["all"] if p.rule == "2 x eager")
    assert (point.wrong_kernels_flagged, point.wrong_kernels) == (10, 10)
    assert (point.control_cases_flagged, point.control_kernels) == (0, 16)


def test_planted_values_accuse_no_control(study: Calibration) -> None:
    """The paper's tool calls 94 % of its controls' cases wrong there: it fails NaN for NaN."""
    point = next(p for p in study.points["adversarial"] if p.rule == "2 x eager")
    assert point.control_cases_flagged == 0
    assert point.control_cases == 16 * 7


def test_no_kind_of_planted_value_accuses_a_control(study: Calibration) -> None:
    assert set(study.by_plant) == set(Plant)
    for points in study.by_plant.values():
        point = next(p for p in points if p.rule == "2 x eager")
        assert point.control_cases_flagged == 0


def test_every_op_and_dtype_has_a_clean_tolerance_beside_the_declared_one(
    study: Calibration,
) -> None:
    """The declared figures are wide: the sweep finds a clean one no greater in every row."""
    assert len(study.by_op) == 27
    for one in study.by_op:
        assert one.clean is not None
        assert one.declared is not None
        assert one.clean.atol <= one.declared.atol


def test_a_looser_tolerance_never_flags_more(study: Calibration) -> None:
    for points in study.points.values():
        by_rule = {point.rule: point for point in points}
        sweep = [by_rule[f"atol {atol:g}"] for atol in ATOLS]
        flagged = [point.wrong_cases_flagged + point.control_cases_flagged for point in sweep]
        assert flagged == sorted(flagged, reverse=True)


def test_every_factor_is_in_the_sweep(study: Calibration) -> None:
    rules = {point.rule for point in study.points["all"]}
    assert {f"{factor:g} x eager" for factor in FACTORS} <= rules
    assert {"calibrated atol", "declared atol"} <= rules


def test_the_committed_tolerances_cover_every_task_and_dtype_judged_here() -> None:
    table = json.loads((HERE / "tolerances.json").read_text())["tolerances"]
    for folder in (HERE / "tasks").iterdir():
        contract = load_task(folder).contract
        judged = set(contract.dtypes["T"].candidates) - {"bfloat16"}
        assert set(table[folder.name]) == judged
