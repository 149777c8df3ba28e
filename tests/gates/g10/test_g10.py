"""Gate 10 on kernels that overflow, cancel or lose a sign, and on their honest twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import TASKS, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.contract import Domain
from verifier.gates.g10_range import GATE, PATTERNS
from verifier.records import GateStatus
from verifier.referee.generator import Stream

HERE = Path(__file__).parent
VIOLATORS = {
    "violator": ("huge", True),
    "violator_one_pass": ("large_mean", None),
    "violator_epsilon": ("small_rows", False),
    "violator_overflowing_sigmoid": ("huge", True),
    "violator_sign_of_zero": ("zeros", True),
}
TWINS = ["twin", "twin_two_passes", "twin_silu"]


def test_every_violator_has_its_pattern() -> None:
    assert {path.stem for path in HERE.glob("violator*.py")} == set(VIOLATORS)


@pytest.mark.parametrize(("name", "expected"), VIOLATORS.items())
def test_violator_fails(name: str, expected: tuple[str, bool | None], sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    pattern, hard = expected
    found = {case.params["pattern"]: finding.hard for case, finding in judged.failures}
    assert pattern in found, judged.explain()
    assert hard is None or found[pattern] is hard


@pytest.mark.parametrize("name", TWINS)
def test_twin_passes(name: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert judged.status is GateStatus.PASS, judged.explain()
    assert not judged.failures


@pytest.mark.parametrize("task", ["row_softmax", "scale_add", "silu_rows", "row_layernorm"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(TASKS / task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_a_bounded_domain_stays_as_it_is() -> None:
    bench = bench_for(HERE / "twin.py")
    item = replace(bench.contract.inputs[0], domain=Domain(low=0.0, high=1.0))
    bounded = replace(bench, contract=replace(bench.contract, inputs=(item,)))
    assert GATE.applies(bounded) == "no input may leave its ordinary range"


@pytest.mark.parametrize("task", ["causal_sum", "causal_mix", "row_sum", "row_layernorm"])
def test_float32_is_not_tried_next_to_its_greatest_number_where_something_may_be_summed(
    task: str,
) -> None:
    """Partial sums overflow in one order and not in another; a scan keeps its dim, too."""
    assert "near_max" not in float32_patterns(task)


@pytest.mark.parametrize("task", ["silu_rows", "scale_add", "row_softmax"])
def test_float32_is_tried_next_to_its_greatest_number_where_nothing_is_summed(task: str) -> None:
    assert "near_max" in float32_patterns(task)


def float32_patterns(task: str) -> set[str]:
    cases = GATE.cases(make_bench(TASKS / task))
    return {c.params["pattern"] for c in cases if set(c.dtypes.values()) <= {"float32"}}


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_patterns_are_finite_in_the_dtype(name: str) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        ordinary = torch.linspace(-3, 3, 64).reshape(4, 16).to(dtype)
        values = PATTERNS[name](ordinary, Stream(1, name)).to(dtype)
        assert values.shape == ordinary.shape
        assert values.isfinite().all()
