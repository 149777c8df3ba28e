"""Gate 11 on kernels that break a declared relation, and on their honest twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import TASKS, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.contract import Behaviour
from verifier.gates.g11_metamorphic import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
VIOLATORS = {
    "violator": {"shift-0"},
    "violator_last_row": {"permute-M", "duplicate-M", "scale-0-8", "scale-0--8"},
    "violator_leaks_future": {"causal-0"},
}
TWINS = ["twin", "twin_causal"]


def test_every_violator_has_its_relation() -> None:
    assert {path.stem for path in HERE.glob("violator*.py")} == set(VIOLATORS)


@pytest.mark.parametrize(("name", "relations"), VIOLATORS.items())
def test_violator_fails_hard(name: str, relations: set[str], sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    failing = {case.label for case, finding in judged.failures if finding.hard}
    assert failing & relations, judged.explain()


@pytest.mark.parametrize("name", TWINS)
def test_twin_passes(name: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert {finding.status for _, finding in judged.findings} == {GateStatus.PASS}, judged.explain()


@pytest.mark.parametrize("task", ["row_softmax", "scale_add", "row_layernorm", "causal_sum"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(TASKS / task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_each_declared_relation_is_tried() -> None:
    bench = bench_for(HERE / "violator_leaks_future.py")
    labels = {case.label for case in GATE.cases(bench)}
    assert labels == {
        "permute-B",
        "duplicate-B",
        "single-B",
        "scale-0-8",
        "scale-0--8",
        "causal-0",
    }


def test_nothing_declared_is_not_applicable() -> None:
    bench = bench_for(HERE / "twin.py")
    silent = replace(bench.contract, behaviour=Behaviour())
    assert GATE.applies(replace(bench, contract=silent)) == "the contract declares no relation"
