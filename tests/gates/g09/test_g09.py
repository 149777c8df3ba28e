"""Gate 9 on kernels that miss their memory, and on their honest twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import CUDA, TASKS, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g09_memory import GATE
from verifier.records import GateStatus

HERE = Path(__file__).parent
SEEN = "reaches outside of its memory: "
"""In the interpreter, where each access is."""
VIOLATORS = {
    "violator": "wrote outside of its memory",
    "violator_unwritten_tail": "unwritten or foreign memory",
    "violator_reads_past_end": "memory of another's" if CUDA else f"{SEEN}softmax_kernel reads",
    "violator_max_past_end": "memory beyond its own" if CUDA else f"{SEEN}softmax_kernel reads",
    "violator_dirty_scratch": "unwritten or foreign memory",
}
HOSTILE = {"hostile_dirty_scratch": "unwritten or foreign memory"}
"""Right only where fresh memory happens to be zero. Here it never is, so the loose test, which runs
in the same sandbox, rejects them as well: no illusion, but this gate must name the cause."""
TWINS = ["twin", "twin_softmax"]


def test_every_violator_has_its_accusation() -> None:
    assert {path.stem for path in HERE.glob("violator*.py")} == set(VIOLATORS)
    assert {path.stem for path in HERE.glob("hostile*.py")} == set(HOSTILE)


@pytest.mark.parametrize(("name", "accusation"), (VIOLATORS | HOSTILE).items())
def test_violator_fails_hard(name: str, accusation: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.FAIL, judged.explain()
    assert all(finding.hard for _, finding in judged.failures)
    assert accusation in judged.explain()


@pytest.mark.parametrize("name", TWINS)
def test_twin_passes(name: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert {finding.status for _, finding in judged.findings} == {GateStatus.PASS}, judged.explain()


def test_sizes_are_around_the_tiles_of_the_kernel() -> None:
    bench = bench_for(HERE / "twin.py")
    assert bench.constants == (64,)
    tails = [case.dims for case in GATE.cases(bench)][1:]
    assert tails
    assert all(dims["N"] in (65, 63) for dims in tails)


@pytest.mark.parametrize("task", ["row_softmax", "scale_add", "silu_rows", "causal_sum"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(TASKS / task))
    assert judged.status is GateStatus.PASS, judged.explain()
