"""The control sweep: the reference goes the way of any kernel, and hides nothing in doing so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.inprocess import TASKS
from tests.verifier.conftest import Command
from tests.verifier.studies_samples import control_row, control_sweep, gate
from verifier import selfcheck
from verifier.commands.selfcheck import report_lines
from verifier.contract import load_task
from verifier.records import GateId, GateStatus, Language
from verifier.selfcheck import control_source, control_task, find_trials, suite_name, sweep
from verifier.session import Session
from verifier.source import read_source
from verifier.studies import Control, ControlSweep, load

SOFTMAX = TASKS / "row_softmax"


def entry_of(source: str) -> object:
    scope: dict[str, object] = {}
    exec(compile(source, "<control>", "exec"), scope)  # noqa: S102 - our own text
    return scope["run"]


def test_the_eager_control_is_the_reference_itself() -> None:
    run = entry_of(control_source(load_task(SOFTMAX), Control.EAGER))
    x = torch.arange(12.0).reshape(3, 4)
    assert callable(run)
    assert torch.equal(run(x), torch.softmax(x, -1))


def test_a_control_leaves_torchs_flags_as_they_were() -> None:
    run = entry_of(control_source(load_task(SOFTMAX), Control.EAGER))
    before = torch.backends.cudnn.allow_tf32
    assert callable(run)
    run(torch.ones(2, 2))
    assert torch.backends.cudnn.allow_tf32 is before


@pytest.mark.parametrize("allowed", [True, False])
def test_a_control_uses_tf32_where_the_contract_permits_it(allowed: bool) -> None:
    task = load_task(SOFTMAX)
    behaviour = replace(task.contract.behaviour, allow_tf32=allowed)
    task = replace(task, contract=replace(task.contract, behaviour=behaviour))
    assert f"_control_exact({allowed})" in control_source(task, Control.EAGER)


def test_a_compiled_control_says_so_when_nothing_was_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)  # as limits do
    run = entry_of(control_source(load_task(SOFTMAX), Control.COMPILE))
    assert callable(run)
    with pytest.raises(RuntimeError, match="eager once more"):
        run(torch.ones(2, 2))


@pytest.mark.parametrize("control", list(Control))
def test_a_control_counts_as_torch(control: Control) -> None:
    source = control_source(load_task(SOFTMAX), control)
    assert read_source(source.encode()).language is Language.TORCH


def test_the_copied_contract_differs_in_library_calls_alone(tmp_path: Path) -> None:
    copy = load_task(control_task(SOFTMAX, tmp_path / "copy"))
    original = load_task(SOFTMAX)
    assert copy.contract.behaviour.library_calls
    behaviour = replace(copy.contract.behaviour, library_calls=False)
    assert replace(copy.contract, behaviour=behaviour) == original.contract
    assert copy.reference_source == original.reference_source


def test_every_task_below_a_folder_meets_every_control() -> None:
    trials = find_trials([TASKS], list(Control), only=["row_s", "matmul"])
    assert {trial.control for trial in trials} == set(Control)
    names = {trial.folder.name for trial in trials}
    assert names == {"row_softmax", "row_sum", "matmul", "half_matmul"}


def test_a_suite_is_named_by_its_own_folder(tmp_path: Path) -> None:
    assert suite_name(tmp_path / "fuzzoracle" / "tasks") == "fuzzoracle"
    assert suite_name(tmp_path / "fuzzoracle") == "fuzzoracle"


def test_eager_is_accused_of_nothing_in_the_real_pipeline(verifier_session: Session) -> None:
    (row,) = sweep(verifier_session, find_trials([TASKS], [Control.EAGER], ["row_amax"]), seed=0)
    assert row.clean, [(one.gate, one.reason) for one in row.exceptions]
    assert row.digest == load_task(TASKS / "row_amax").digest


def test_where_no_cpp_compiler_is_the_compiled_control_does_not_apply_and_says_why(
    verifier_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfcheck, "CPU_COMPILER", "no-such-compiler")
    trials = find_trials([TASKS], [Control.COMPILE], ["row_amax"])
    (row,) = sweep(verifier_session, trials, seed=0)
    assert {one.status for one in row.gates} == {GateStatus.NOT_APPLICABLE}
    assert row.gates[0].reason.endswith("there is no no-such-compiler here")
    assert len(row.gates) == len(GateId)


def test_a_task_that_cannot_be_used_is_a_row_and_ends_nothing(
    verifier_session: Session, tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/task.json").write_text("{")
    (tmp_path / "broken/reference.py").touch()
    (row,) = sweep(verifier_session, find_trials([tmp_path], [Control.EAGER]), seed=0)
    assert "task.json" in row.error
    assert not row.clean


def test_the_table_counts_by_gate_and_names_each_accusation() -> None:
    accused = gate(GateId.SHAPES, GateStatus.FAIL, "off by a mile", "M=3: M=3 float32")
    study = control_sweep(control_row(), control_row(Control.EAGER, "rope", accused))
    text = "\n".join(report_lines(study))
    assert "eager: 1 of 2 tasks clean" in text
    assert "G4 FAIL fuzzoracle/rope eager" in text
    assert "M=3: M=3 float32" in text


def test_the_command_stores_the_sweep_with_its_gate_set(tmp_path: Path, command: Command) -> None:
    out = tmp_path / "sweep.json"
    words = ("selfcheck", "--suite-dir", TASKS, "--only", "loose_scale", "--controls", "eager")
    assert command(*words, "--json", out) == 0
    study = load(ControlSweep, out)
    assert study.origin.current
    assert [row.task for row in study.rows] == ["loose_scale"]
    assert "library_calls" in study.judged_as


def test_an_unknown_control_and_an_empty_folder_are_bad_usage(
    tmp_path: Path, command: Command
) -> None:
    assert command("selfcheck", "--suite-dir", TASKS, "--controls", "jax") == 2
    assert command("selfcheck", "--suite-dir", tmp_path) == 2


def test_several_workers_judge_what_one_would(tmp_path: Path) -> None:
    """As a program of its own, because the workers start it anew with its own words."""
    import subprocess
    import sys

    out = tmp_path / "sweep.json"
    words = [sys.executable, "-m", "verifier", "selfcheck", "--suite-dir", str(TASKS)]
    words += ["--only", "loose_scale,add_int64", "--controls", "eager", "--workers", "2"]
    done = subprocess.run([*words, "--device", "cpu", "--json", str(out)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    rows = json.loads(out.read_text())["rows"]
    assert [row["task"] for row in rows] == ["add_int64", "loose_scale"]
