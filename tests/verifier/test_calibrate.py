"""Calibration: tolerances come from even cases, every rule is judged on the odd ones."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gates.inprocess import TASKS
from tests.verifier.conftest import Command
from verifier.calibrate import (
    ATOLS,
    FACTORS,
    Calibration,
    Entry,
    Observation,
    Point,
    calibrate,
    calibrated,
    op_sweeps,
    read_index,
    round_up,
    rules,
    score,
)
from verifier.fuzz import Plant, Strategy
from verifier.session import Session, UsageError

HONEST = "import torch\n\ndef run(x):\n    return torch.softmax(x.float(), -1).to(x.dtype)\n"
HALF_WRONG = HONEST.replace("-1)", "-1).mul(1.001)")
SWALLOWS_NAN = HONEST.replace("x.float()", "x.float().nan_to_num(nan=0.0)")
REFUSES = "def run(x):\n    raise ValueError('only on Tuesdays')\n"
ITERATIONS = 14
STRATEGIES = (Strategy.REGULAR, Strategy.BOUNDARY, Strategy.ADVERSARIAL)


def seen(label: str, error: float, *, wrong: bool, number: int = 1) -> Observation:
    return Observation(
        label, "t", wrong, Strategy.BOUNDARY, number, "float32", error, eager_error=1.0, floor=0.5
    )


def entry(label: str, declared: dict[str, float]) -> Entry:
    return Entry(label, "t", False, Path(f"{label}.py"), declared)


def make_suite(root: Path, kernels: dict[str, tuple[str, str]]) -> Path:
    """A suite with one task and these kernels by label: role and source."""
    shutil.copytree(TASKS / "row_softmax", root / "tasks/softmax")
    folder = root / "kernels/group"
    folder.mkdir(parents=True)
    rows: list[dict[str, Any]] = []
    for label, (role, source) in kernels.items():
        (folder / f"{label}.py").write_text(source)
        rows.append({"label": label, "task": "softmax", "role": role})
    (folder / "index.json").write_text(json.dumps({"kernels": rows}))
    return root


# --- arithmetic


def test_a_calibrated_tolerance_is_twice_the_greatest_error_of_a_control_rounded_up() -> None:
    table = calibrated(
        [seen("a", 1e-6, wrong=False), seen("b", 2.1e-6, wrong=False), seen("c", 3e-7, wrong=False)]
    )
    assert table == {"t": {"float32": 5e-6}}


def test_neither_bugs_nor_infinite_errors_set_a_tolerance() -> None:
    table = calibrated(
        [
            seen("a", 1e-6, wrong=False),
            seen("a", math.inf, wrong=False),
            seen("bug", 0.3, wrong=True),
        ]
    )
    assert table == {"t": {"float32": 2e-6}}


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.0, 1e-12), (1e-13, 1e-12), (1.1e-4, 2e-4), (2e-4, 2e-4), (6e-4, 1e-3)]
)
def test_rounding_up_goes_to_the_next_of_1_2_5(value: float, rounded: float) -> None:
    assert round_up(value) == rounded


def test_a_kernel_is_flagged_by_any_one_of_its_cases() -> None:
    observations = [
        seen("bug", 0.1, wrong=True),
        seen("bug", 9.0, wrong=True),
        seen("ok", 0.1, wrong=False),
        seen("ok", 0.2, wrong=False),
    ]
    assert score("r", lambda one: one.error > 1.0, observations) == Point(
        "r", 1, 1, 2, 1, 1, 0, 2, 0
    )


def test_each_factor_multiplies_eagers_error_and_keeps_the_floor() -> None:
    table = dict(rules([entry("a", {})], {}))
    twice = table["2 x eager"]
    assert not twice(seen("a", 2.5, wrong=False))
    assert twice(seen("a", 2.6, wrong=False))


def test_the_conditioning_of_the_input_excuses_a_kernel_unless_the_rule_is_plain() -> None:
    table = dict(rules([entry("a", {})], {}))
    unlucky = replace(seen("a", 3.0, wrong=False), conditioning=1.0)
    assert not table["2 x eager"](unlucky)
    assert table["2 x eager, plain"](unlucky)


def test_where_eager_is_no_guide_only_an_infinite_error_is_flagged() -> None:
    ill = [replace(seen("a", error, wrong=True), ill=True) for error in (9.0, math.inf)]
    assert score("r", lambda one: one.error > 1.0, ill).wrong_cases_flagged == 1


def test_large_values_set_no_absolute_tolerance() -> None:
    rows = [seen("a", 1e-6, wrong=False), replace(seen("a", 30.0, wrong=False), plant="large")]
    assert calibrated(rows) == {"t": {"float32": 2e-6}}


def half(label: str, error: float, number: int, *, wrong: bool) -> Observation:
    return seen(label, error, wrong=wrong, number=number)


def test_each_op_and_dtype_has_its_smallest_clean_tolerance_beside_the_declared_one() -> None:
    rows = [
        half("ok", 2e-5, 0, wrong=False),
        half("ok", 5e-5, 1, wrong=False),
        half("bug", 4e-5, 1, wrong=True),
        half("bug", 0.5, 3, wrong=True),
    ]
    (one,) = op_sweeps([entry("ok", {"float32": 1e-3})], {"t": {"float32": 1e-1}}, rows)
    assert (one.task, one.dtype) == ("t", "float32")
    assert one.clean is not None
    assert one.clean.atol == pytest.approx(3e-5)
    assert (one.clean.point.wrong_cases_flagged, one.clean.point.wrong_cases) == (2, 2)
    assert (one.clean.point.control_cases_flagged, one.clean.point.control_cases) == (1, 1)
    assert one.declared is not None
    assert (one.declared.atol, one.declared.point.wrong_cases_flagged) == (1e-3, 1)
    assert one.declared.point.control_cases_flagged == 0
    assert one.calibrated is not None
    assert one.calibrated.atol == 1e-1
    assert [tried.atol for tried in one.sweep] == list(ATOLS)


def test_an_op_whose_control_no_tolerance_excuses_has_no_clean_one() -> None:
    (one,) = op_sweeps([entry("ok", {})], {}, [half("ok", math.inf, 0, wrong=False)])
    assert (one.clean, one.calibrated, one.declared) == (None, None, None)


def test_every_rule_flags_an_infinite_error() -> None:
    declared = entry("a", {"float32": 1e9})
    table = rules([declared], {"t": {"float32": 1e9}})
    assert len(table) == len(FACTORS) + len(ATOLS) + len(("plain", "calibrated", "declared"))
    assert all(flags(seen("a", math.inf, wrong=False)) for _, flags in table)


def test_declared_tolerances_are_judged_only_where_every_entry_declares_them() -> None:
    with_all = [name for name, _ in rules([entry("a", {"float32": 1e-3})], {})]
    with_some = [name for name, _ in rules([entry("a", {"float32": 1e-3}), entry("b", {})], {})]
    assert "declared atol" in with_all
    assert "declared atol" not in with_some


# --- a small corpus through the sandbox


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, verifier_session: Session) -> Calibration:
    kernels = {
        "honest": ("control", HONEST),
        "scaled": ("bug", HALF_WRONG),
        "swallows": ("bug", SWALLOWS_NAN),
        "refuses": ("control", REFUSES),
    }
    suite = make_suite(tmp_path_factory.mktemp("suite"), kernels)
    return calibrate(verifier_session, suite, "group", seed=4, iterations=ITERATIONS)


def point(study: Calibration, strategy: str, rule: str) -> Point:
    return next(one for one in study.points[strategy] if one.rule == rule)


def test_the_default_rule_flags_the_bugs_and_no_control(study: Calibration) -> None:
    found = point(study, "all", "2 x eager")
    assert (found.wrong_kernels_flagged, found.wrong_kernels) == (2, 2)
    assert (found.control_cases_flagged, found.control_kernels_flagged) == (0, 0)


def test_a_looser_atol_never_flags_more(study: Calibration) -> None:
    flagged = [point(study, "all", f"atol {atol:g}") for atol in ATOLS]
    for tighter, looser in itertools.pairwise(flagged):
        assert looser.wrong_cases_flagged <= tighter.wrong_cases_flagged
        assert looser.control_cases_flagged <= tighter.control_cases_flagged


def test_an_atol_of_one_still_flags_a_finite_value_for_a_nan(study: Calibration) -> None:
    """A checker that subtracts first has this hole: no difference from NaN exceeds any bound."""
    widest = f"atol {max(ATOLS):g}"
    assert point(study, "adversarial", widest).wrong_kernels_flagged == 1
    assert point(study, "boundary", widest).wrong_kernels_flagged == 0


@pytest.mark.parametrize("rule", ["2 x eager", f"atol {max(ATOLS):g}"])
def test_nan_for_nan_is_no_false_positive(study: Calibration, rule: str) -> None:
    assert Plant.NAN in study.by_plant
    assert point(study, "adversarial", rule).control_cases_flagged == 0


def test_only_odd_cases_are_scored(study: Calibration) -> None:
    for strategy in STRATEGIES:
        found = point(study, strategy.value, "calibrated atol")
        assert found.control_cases == ITERATIONS // 2
        assert found.wrong_cases == 2 * (ITERATIONS // 2)


def test_what_a_kernel_refuses_is_counted_apart(study: Calibration) -> None:
    assert study.refused == {"refuses": len(STRATEGIES) * ITERATIONS}


def test_tolerances_come_for_each_dtype_that_controls_met(study: Calibration) -> None:
    by_dtype = study.tolerances["softmax"]
    assert by_dtype.keys() <= {"float32", "float16", "bfloat16"}
    assert all(0 < atol < 0.1 for atol in by_dtype.values())
    assert by_dtype.get("float32", 0.0) < by_dtype.get("bfloat16", 1.0)


# --- the command


def test_an_index_that_is_missing_or_bad_is_bad_usage(tmp_path: Path, command: Command) -> None:
    with pytest.raises(UsageError, match="no corpus index"):
        read_index(tmp_path, "nowhere")
    assert command("calibrate", "--suite-dir", tmp_path, "--iterations", 2) == 2


def test_one_iteration_cannot_both_calibrate_and_judge(tmp_path: Path, command: Command) -> None:
    assert command("calibrate", "--suite-dir", tmp_path, "--iterations", 1) == 2


def test_the_study_is_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: Command
) -> None:
    suite = make_suite(tmp_path, {"ok": ("control", HONEST), "bad": ("bug", HALF_WRONG)})
    out = tmp_path / "study.json"
    words = ("calibrate", "--suite-dir", suite, "--group", "group", "--iterations", 4)
    assert command(*words, "--device", "cpu", "--json", out) == 0
    printed = capsys.readouterr().out
    assert "2 x eager" in printed
    assert "clean" in printed
    assert "declared" in printed
    document = json.loads(out.read_text())
    assert document["iterations"] == 4
    assert set(document["points"]) == {*(s.value for s in STRATEGIES), "all"}
    assert set(document["by_plant"]) <= {plant.value for plant in Plant}
    assert {row["task"] for row in document["by_op"]} == {"softmax"}
    assert all(len(row["sweep"]) == len(ATOLS) for row in document["by_op"])


def test_an_entry_is_wrong_unless_it_is_a_control(tmp_path: Path) -> None:
    roles = {"ok": "control", "bug": "bug", "illusion": "illusion"}
    suite = make_suite(tmp_path, {label: (role, HONEST) for label, role in roles.items()})
    found = {one.label: one.wrong for one in read_index(suite, "group")}
    assert found == {"ok": False, "bug": True, "illusion": True}
