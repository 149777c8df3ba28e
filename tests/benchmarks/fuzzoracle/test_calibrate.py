"""Calibration: thresholds fitted on one half of the cases and judged on the other."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.fuzzoracle.suite import HERE
from verifier.__main__ import main
from verifier.calibrate import (
    ATOLS,
    FACTORS,
    Calibration,
    Observation,
    calibrate,
    calibrated,
    read_index,
    round_up,
    score,
)
from verifier.contract import load_task
from verifier.fuzz import Strategy
from verifier.session import Session, UsageError


def seen(label: str, *, wrong: bool, error: float, task: str = "op") -> Observation:
    return Observation(
        label, task, wrong, Strategy.BOUNDARY, 0, "float32", error, eager_error=1e-7, floor=1e-8
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3e-6, 5e-6), (5e-6, 5e-6), (6e-6, 1e-5), (1.0, 1.0), (0.0, 1e-12)],
)
def test_a_tolerance_is_rounded_up_to_1_2_or_5(value: float, expected: float) -> None:
    assert round_up(value) == pytest.approx(expected)


def test_a_tolerance_is_twice_the_greatest_error_of_the_controls() -> None:
    rows = [
        seen("a", wrong=False, error=1e-6),
        seen("a", wrong=False, error=2e-6),
        seen("b", wrong=True, error=1.0),
    ]
    assert calibrated(rows) == {"op": {"float32": 5e-6}}


def test_an_infinite_error_of_a_control_does_not_raise_the_tolerance() -> None:
    rows = [seen("a", wrong=False, error=math.inf), seen("a", wrong=False, error=1e-6)]
    assert calibrated(rows) == {"op": {"float32": 2e-6}}


def test_a_score_counts_kernels_once_and_cases_each() -> None:
    rows = [
        seen("a", wrong=False, error=0.0),
        seen("b", wrong=True, error=1.0),
        seen("b", wrong=True, error=1.0),
        seen("b", wrong=True, error=0.0),
    ]
    point = score("r", lambda one: one.error > 0.5, rows)
    assert (point.wrong_kernels, point.wrong_kernels_flagged) == (1, 1)
    assert (point.wrong_cases, point.wrong_cases_flagged) == (3, 2)
    assert (point.control_kernels, point.control_kernels_flagged) == (1, 0)


def test_an_index_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no corpus index"):
        read_index(tmp_path, "p1_replica")


def test_the_replica_declares_a_tolerance_for_each_entry() -> None:
    entries = read_index(HERE, "p1_replica")
    assert len(entries) == 26
    assert all(entry.declared for entry in entries)


def test_one_iteration_cannot_both_calibrate_and_judge() -> None:
    assert main(["calibrate", "--suite-dir", str(HERE), "--iterations", "1"]) == 2


@pytest.fixture(scope="module")
def study(verifier_session: Session) -> Calibration:
    return calibrate(verifier_session, HERE, "p1_replica", seed=1, iterations=16)


def test_the_default_rule_flags_every_bug_and_no_control(study: Calibration) -> None:
    point = next(p for p in study.points["all"] if p.rule == "2 x eager")
    assert (point.wrong_kernels_flagged, point.wrong_kernels) == (10, 10)
    assert (point.control_cases_flagged, point.control_kernels) == (0, 16)


def test_planted_values_accuse_no_control(study: Calibration) -> None:
    """The paper's tool calls 94 % of its controls' cases wrong there: it fails NaN for NaN."""
    point = next(p for p in study.points["adversarial"] if p.rule == "2 x eager")
    assert point.control_cases_flagged == 0
    assert point.control_cases > 100


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


def test_the_command_writes_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "suite"
    (suite / "kernels" / "few").mkdir(parents=True)
    (suite / "tasks").symlink_to(HERE / "tasks")
    labels = {"relu_triton": "control", "leaky_relu_triton_buggy": "bug"}
    tasks = {"relu_triton": "relu", "leaky_relu_triton_buggy": "leaky_relu"}
    rows = [{"label": label, "task": tasks[label], "role": role} for label, role in labels.items()]
    for label in labels:
        text = (HERE / "kernels" / "p1_replica" / f"{label}.py").read_text()
        (suite / "kernels" / "few" / f"{label}.py").write_text(text)
    (suite / "kernels" / "few" / "index.json").write_text(json.dumps({"kernels": rows}))
    out = tmp_path / "study.json"
    words = ["calibrate", "--suite-dir", str(suite), "--group", "few", "--iterations", "4"]
    assert main([*words, "--json", str(out)]) == 0
    assert "calibrated absolute tolerances" in capsys.readouterr().out
    assert json.loads(out.read_text())["tolerances"]["relu"]


def test_the_committed_tolerances_cover_every_task_and_dtype_judged_here() -> None:
    table = json.loads((HERE / "tolerances.json").read_text())["tolerances"]
    for folder in (HERE / "tasks").iterdir():
        contract = load_task(folder).contract
        judged = set(contract.dtypes["T"].candidates) - {"bfloat16"}
        assert set(table[folder.name]) == judged
