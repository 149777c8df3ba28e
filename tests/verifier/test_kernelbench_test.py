"""Defence 3: KernelBench's test to the letter, and its own code run beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.inprocess import TASKS, InProcess
from tests.verifier.conftest import Command
from tests.verifier.test_calibrate import HONEST, make_suite
from verifier.contract import Task, load_task
from verifier.defences.agreement import NO_GPU
from verifier.defences.kernelbench import (
    Literal,
    UnfitError,
    literal_test,
    model_new,
    problem,
)
from verifier.defences.upstream import UpstreamJob, identify, run_upstream
from verifier.studies import AgreementStudy, load

CPU = torch.device("cpu")


def judge(task: str | Task, source: str, folder: Path, trials: int = 3) -> Literal:
    kernel = folder / "kernel.py"
    kernel.write_text(source)
    posed = problem(load_task(TASKS / task) if isinstance(task, str) else task)
    return literal_test(posed, InProcess(kernel, CPU), CPU, trials=trials)


def test_an_honest_kernel_is_accepted(tmp_path: Path) -> None:
    assert judge("row_softmax", HONEST, tmp_path) == Literal(True, "")


@pytest.mark.parametrize(("error", "accepted"), [(5e-5, True), (5e-3, False)])
def test_fp32_may_be_off_by_a_ten_thousandth(error: float, accepted: bool, tmp_path: Path) -> None:
    source = HONEST.replace("-1)", f"-1).add({error})")
    assert judge("row_softmax", source, tmp_path).accepted is accepted


def test_half_precision_may_be_off_by_a_hundredth(tmp_path: Path) -> None:
    source = "import torch\n\ndef run(a, b):\n    return (a @ b) * 1.005\n"
    assert judge("half_matmul", source, tmp_path).accepted


def test_another_dtype_is_an_error_and_not_a_wrong_value(tmp_path: Path) -> None:
    found = judge("row_softmax", HONEST.replace(".to(x.dtype)", ".double()"), tmp_path)
    assert not found.accepted
    assert "allclose raises" in found.detail


def test_another_shape_is_rejected(tmp_path: Path) -> None:
    found = judge("row_softmax", HONEST.replace("-1)", "-1)[:1]"), tmp_path)
    assert "shape" in found.detail


def test_nan_where_the_reference_has_nan_is_rejected(tmp_path: Path) -> None:
    task = load_task(TASKS / "row_softmax")
    nowhere = "def reference(x):\n    return x * float('nan')\n"
    source = "def run(x):\n    return x * float('nan')\n"
    assert not judge(replace(task, reference_source=nowhere), source, tmp_path).accepted


def test_a_wrong_value_stops_no_trial_and_an_exception_does(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    posed = problem(load_task(TASKS / "row_softmax"))
    for source, calls in (("def run(x):\n    return x\n", 3), ("def run(x):\n    1 / 0\n", 1)):
        kernel.write_text(source)
        subject = InProcess(kernel, CPU)
        assert not literal_test(posed, subject, CPU, trials=3).accepted
        assert subject.calls == calls


def test_the_kernel_gets_what_the_reference_left_of_the_inputs(tmp_path: Path) -> None:
    """Upstream clones nothing: a reference that writes to its input hands the result on."""
    task = load_task(TASKS / "row_softmax")
    greedy = "def reference(x):\n    return x.mul_(2).clone()\n"
    source = "def run(x):\n    return x.clone()\n"
    assert judge(replace(task, reference_source=greedy), source, tmp_path).accepted


def test_indices_are_cast_to_the_precision_too() -> None:
    posed = problem(load_task(TASKS / "scatter_add"))
    assert "randint(0, 8, [64])" in posed.source
    assert posed.precision == "fp16"


def test_a_task_without_a_float_input_cannot_be_asked() -> None:
    with pytest.raises(UnfitError, match="precision"):
        problem(load_task(TASKS / "add_int64"))


# --- the upstream side, with a small stand-in for the checkout

EVAL = """
import os
from types import SimpleNamespace


def get_torch_dtype_from_string(name):
    return name


def eval_kernel_against_ref(original, custom, seed_num, num_correct_trials, precision, **rest):
    assert "class ModelNew" in custom and "class Model(" in original
    assert (seed_num, num_correct_trials, rest["measure_performance"]) == (42, 5, False)
    if "os.abort" in custom:
        os.abort()
    if "1 / 0" in custom:
        raise ZeroDivisionError("nobody caught it")
    return SimpleNamespace(correctness="softmax" in custom, compiled=True, metadata={})
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout/src/kernelbench"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("import litellm\nlitellm.completion()\n")
    (folder / "eval.py").write_text(EVAL)
    return tmp_path / "checkout"


def job(name: str, source: str) -> UpstreamJob:
    original = problem(load_task(TASKS / "row_softmax")).source
    return UpstreamJob(name, original, model_new(source, "run"), "fp32", "triton", 5, 42)


def test_each_kernel_has_a_process_of_its_own_upstream(checkout: Path) -> None:
    jobs = [
        job("dies", "import os\n\ndef run(x):\n    os.abort()\n"),
        job("right", HONEST),
        job("raises", "def run(x):\n    1 / 0\n"),
        job("wrong", "def run(x):\n    return x\n"),
    ]
    found = {one.id: one for one in run_upstream(checkout, jobs, side_by_side=2)}
    assert {name: one.accepted for name, one in found.items()} == {
        "dies": False,
        "right": True,
        "raises": None,
        "wrong": False,
    }
    assert "ended with" in found["dies"].detail
    assert "nobody caught it" in found["raises"].detail


def test_a_checkout_without_git_is_known_by_its_evals_digest(checkout: Path) -> None:
    before = identify(checkout)
    (checkout / "src/kernelbench/eval.py").write_text(EVAL + "\n")
    assert identify(checkout) != before


def test_without_a_gpu_the_study_says_that_nothing_was_compared(
    checkout: Path, tmp_path: Path, command: Command
) -> None:
    suite, out = make_suite(tmp_path / "s", {"ok": ("control", HONEST)}), tmp_path / "out.json"
    words = ("defend", "agreement", "--suite-dir", suite, "--groups", "group")
    assert command(*words, "--kernelbench", checkout, "--json", out) == 1
    (row,) = load(AgreementStudy, out).rows
    assert (row.ours, row.theirs, row.theirs_detail) == (True, None, NO_GPU)


def test_a_folder_that_is_no_checkout_is_bad_usage(tmp_path: Path, command: Command) -> None:
    suite = make_suite(tmp_path / "s", {"ok": ("control", HONEST)})
    words = ("defend", "agreement", "--suite-dir", suite, "--groups", "group")
    assert command(*words, "--kernelbench", tmp_path) == 2


def test_explanations_must_be_texts(checkout: Path, tmp_path: Path, command: Command) -> None:
    suite = make_suite(tmp_path / "s", {"ok": ("control", HONEST)})
    (tmp_path / "why.json").write_text(json.dumps({"ok": 3}))
    words = ("defend", "agreement", "--suite-dir", suite, "--groups", "group")
    options = ("--kernelbench", checkout, "--explanations", tmp_path / "why.json")
    assert command(*words, *options) == 2
