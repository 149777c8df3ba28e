"""Gate 1 on kernels that only look right, on kernels that do not even load, and on honest ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.caged import judge_kernel
from tests.gates.inprocess import judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g01_agreement import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
VIOLATORS = sorted(HERE.glob("violator*.py"))
TWINS = sorted(HERE.glob("twin*.py"))

BROKEN = {
    "def run(x, gain:\n": "SyntaxError: '(' was never closed",
    "import no_such_module_anywhere\n": "ModuleNotFoundError",
    "def go(x, gain): return x\n": "could not be loaded",
    "def run(x): return x\n": "raised TypeError",
    "def run(x, gain): raise ValueError('not today')\n": "raised ValueError: not today",
    "def run(x, gain): return 7\n": "returned no usable output",
    "def run(x, gain): return x, x\n": "returned 2 outputs, the contract has 1",
    "def run(x, gain): return x[1:]\n": "shape [1023], not [1024]",
    "def run(x, gain): return x.double()\n": "float64, not float32",
}


@pytest.mark.parametrize("kernel", VIOLATORS, ids=lambda path: path.stem)
def test_violator_fails(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.FAIL, judged.explain()


@pytest.mark.parametrize("kernel", TWINS, ids=lambda path: path.stem)
def test_twin_passes(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.parametrize("task", ["row_softmax", "relu", "matmul", "row_sum", "dropout"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_zeros_within_a_loose_tolerance_are_named_as_such(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py")
    assert {finding.detail for _, finding in judged.failures} == {
        "y is hardly better than all zeros"
    }


def test_an_op_that_is_trivial_on_some_values_is_not_accused() -> None:
    """ReLU of values in [0, 1) passes its input through, and is right to do so."""
    judged = judge_eager(GATE, make_bench("relu"))
    uniform = [f for case, f in judged.findings if case.fill == "uniform"]
    assert uniform
    assert all(finding.passed for finding in uniform)


def test_overflow_at_realistic_logits_is_a_hard_failure(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_no_max.py")
    assert all(finding.hard for _, finding in judged.failures)


@pytest.mark.parametrize("source", BROKEN, ids=lambda source: BROKEN[source])
def test_what_cannot_be_called_fails_with_a_clear_sentence(
    source: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(source)
    folder = HERE.parent / "tasks" / "loose_scale"
    judged = judge_kernel(GATE, sandbox, kernel, task=folder, only="normal values")
    _, finding = judged.failures[0]
    assert BROKEN[source] in finding.detail
    assert finding.hard


def test_random_draws_are_judged_as_a_distribution(sandbox: Sandbox) -> None:
    fair = judge_kernel(GATE, sandbox, HERE / "kernels" / "fair_dropout.py")
    biased = judge_kernel(GATE, sandbox, HERE / "kernels" / "biased_dropout.py")
    assert fair.status is GateStatus.PASS, fair.explain()
    assert biased.status is GateStatus.FAIL, biased.explain()


def test_at_least_five_seeds_and_three_distributions() -> None:
    cases = list(GATE.cases(make_bench("row_softmax")))
    usual = [case for case in cases if case.dtypes == {"T": "float32"}]
    assert len({case.seed for case in usual}) >= 5
    assert len({case.fill for case in usual}) >= 3
