"""Gate 8 on kernels that leave traces, and on their honest twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import TASKS, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g08_side_effects import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
VIOLATORS = {
    "violator": "changed its input",
    "violator_scaled_back": "changed its input",
    "violator_reused_output": "earlier",
    "violator_seeds": "torch random state",
    "violator_flags": "float32 matmul precision",
}


def test_every_violator_has_its_accusation() -> None:
    assert {path.stem for path in HERE.glob("violator*.py")} == set(VIOLATORS)


@pytest.mark.parametrize(("name", "accusation"), VIOLATORS.items())
def test_violator_fails_hard(name: str, accusation: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.FAIL, judged.explain()
    assert all(finding.hard for _, finding in judged.failures)
    assert accusation in judged.explain()


def test_the_missing_copy_shows_in_float32_only(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py")
    assert [case.label for case, _ in judged.failures] == ["float32"]


def test_a_changed_input_is_pointed_at(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py", only="float32")
    finding = judged.failures[0][1]
    assert finding.output == "x"
    assert finding.expected != finding.got


@pytest.mark.parametrize("name", ["violator_flags", "violator_seeds"])
def test_a_trace_that_earlier_calls_left_is_seen_all_the_same(name: str, sandbox: Sandbox) -> None:
    kernel = HERE / f"{name}.py"
    bench = bench_for(kernel)
    case = next(iter(GATE.cases(bench)))
    candidate = sandbox.load(source=kernel.read_bytes(), entry="run")
    candidate.call(bench.args(case))
    finding = GATE.judge(bench, case, candidate)
    candidate.close()
    assert finding.failed
    assert VIOLATORS[name] in finding.detail


@pytest.mark.parametrize("name", ["twin", "twin_in_place"])
def test_twin_passes(name: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.PASS, judged.explain()


def test_writing_to_an_input_that_the_contract_gives_away_is_no_failure_elsewhere(
    sandbox: Sandbox,
) -> None:
    """The very same kernel is wrong where the contract does not declare it in place."""
    kernel = HERE / "twin_in_place.py"
    judged = judge_kernel(GATE, sandbox, kernel, task=TASKS / "silu_rows")
    assert judged.status is GateStatus.FAIL


@pytest.mark.parametrize("task", ["silu_rows", "row_softmax", "scale_add", "causal_sum"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(TASKS / task))
    assert judged.status is GateStatus.PASS, judged.explain()
