"""Gate 7 on kernels that ignore strides, and on their honest twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import TASKS, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g07_layout import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
VIOLATORS = sorted(HERE.glob("violator*.py"))
TWINS = [HERE / "twin.py", HERE / "twin_contiguous.py"]


@pytest.mark.parametrize("kernel", VIOLATORS, ids=lambda path: path.stem)
def test_violator_fails(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.FAIL, judged.explain()


@pytest.mark.parametrize("kernel", TWINS, ids=lambda path: path.stem)
def test_twin_passes(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.PASS, judged.explain()
    assert all("agrees with golden" in finding.detail for _, finding in judged.findings)


def test_reading_garbage_between_the_elements_is_a_hard_failure(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py", only="step2")
    assert [finding.hard for _, finding in judged.failures] == [True]


def test_only_a_single_strange_input_shows_borrowed_strides(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_borrowed_strides.py")
    labels = {case.label for case, _ in judged.failures}
    assert "step2-b" in labels
    assert "step2-all" not in labels


def test_raising_is_a_refusal_with_its_reason(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "twin_refuses.py")
    assert judged.status is GateStatus.PASS  # the odd offset is contiguous
    refused = [f for _, f in judged.findings if f.status is GateStatus.NOT_APPLICABLE]
    assert refused
    assert all("x must be contiguous" in finding.detail for finding in refused)


@pytest.mark.parametrize("task", ["row_softmax", "scale_add", "row_layernorm", "causal_sum"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(TASKS / task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_each_layout_is_tried_on_each_task() -> None:
    bench = bench_for(HERE / "violator_borrowed_strides.py")
    kinds = {case.label.split("-")[0] for case in GATE.cases(bench)}
    assert kinds == {"transposed", "step2", "offset", "expanded", "broadcast", "packed"}


def test_random_ops_are_not_asked() -> None:
    assert GATE.applies(make_bench("dropout")) == "draws random numbers"
