"""The task that gradients make of a task: its contract, its reference, and one result of both."""

from __future__ import annotations

from typing import Any, Final

import pytest
import torch

from verifier.contract import Contract, TaskError, parse_contract
from verifier.gradients import derive, derive_bench, differentiate, merged
from verifier.pipeline import build_backward
from verifier.records import (
    CaseRecord,
    Counterexample,
    DeviceMode,
    GateId,
    GateResult,
    GateStatus,
    Language,
)
from verifier.referee.bench import Bench
from verifier.referee.compare import bitwise_differs
from verifier.referee.roundings import STEP, Roundings

SCALED: Final[dict[str, Any]] = {
    "slug": "scaled",
    "title": "Rows times weights",
    "category": "elementwise",
    "dims": {
        "M": {"candidates": [1, 2, 4], "usual": 4, "minimum": 1},
        "N": {"candidates": [1, 3, 8], "usual": 8, "minimum": 1},
    },
    "dtypes": {"T": {"candidates": ["float32", "float16", "int32"], "usual": "float32"}},
    "inputs": [
        {"name": "x", "shape": ["M", "N"], "dtype": "T"},
        {"name": "w", "shape": ["N"], "dtype": "T"},
        {
            "name": "rows",
            "shape": ["M"],
            "dtype": "int64",
            "domain": {"kind": "index", "high": "M"},
        },
    ],
    "scalars": [{"name": "power", "value": 2}],
    "outputs": [
        {"name": "y", "shape": ["M", "N"], "dtype": "T"},
        {"name": "best", "shape": ["M"], "dtype": "int64"},
    ],
    "behaviour": {"causal": [{"inputs": ["x"], "dim": "N"}]},
    "gradients": {"inputs": ["w", "x"]},
}


def scaled(**changes: Any) -> Contract:
    return parse_contract({**SCALED, **changes})


def reference(
    x: torch.Tensor, w: torch.Tensor, rows: torch.Tensor, power: int
) -> tuple[torch.Tensor, ...]:
    return x[rows] ** power * w, x.argmax(-1)


def derived(contract: Contract) -> Contract:
    assert contract.gradients is not None
    return derive(contract, contract.gradients)


def bench(contract: Contract, function: Any = reference) -> Bench:
    cpu = torch.device("cpu")
    return Bench(contract, function, DeviceMode.CPU_INTERPRET, cpu, 7, Language.TRITON)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gradients": {"inputs": []}}, "name at least one input or weight"),
        ({"gradients": {"inputs": ["z"]}}, "'z' is no input of a floating-point dtype"),
        ({"gradients": {"inputs": ["rows"]}}, "'rows' is no input of a floating-point dtype"),
        ({"gradients": {"inputs": ["x"], "outputs": ["best"]}}, "'best' is no output"),
        ({"behaviour": {"random": True}}, "gradients of a random op"),
    ],
)
def test_gradients_that_cannot_be_asked_for_are_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(TaskError, match=words):
        scaled(**changes)


def test_the_derived_task_takes_upstream_gradients_and_gives_those_of_the_inputs() -> None:
    contract = derived(scaled())
    assert contract.call_order == ("x", "w", "rows", "power", "upstream of y", "passes")
    assert [out.name for out in contract.outputs] == ["y", "best", "gradient of w", "gradient of x"]
    assert contract.input("upstream of y").shape == ("M", "N")
    assert contract.outputs[2].shape == ("N",)


def test_dtypes_without_gradients_are_no_part_of_the_derived_task() -> None:
    assert derived(scaled()).dtypes["T"].candidates == ("float32", "float16")


def test_a_past_that_no_future_reaches_is_no_promise_of_gradients() -> None:
    contract = derived(scaled())
    assert not contract.behaviour.causal
    assert not contract.input("upstream of y").domain.allows_nonfinite


def test_the_derived_reference_is_autograd_over_the_tasks_own() -> None:
    contract = scaled()
    assert contract.gradients is not None
    gradient = differentiate(reference, contract, contract.gradients)
    x, w, up = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        y, _, dw, dx = gradient(x, w[0], torch.tensor([1, 0]), 2, up, 1)
    assert not y.requires_grad
    torch.testing.assert_close(dw, (up * x.flip(0) ** 2).sum(0))
    torch.testing.assert_close(dx, (up * 2 * x.flip(0) * w[0]).flip(0))


def test_a_reference_without_such_a_gradient_is_the_tasks_fault() -> None:
    with pytest.raises(TaskError, match="no gradient of w"):
        build_backward(bench(scaled(), lambda x, w, rows, power: (x**power, x.argmax(-1))))


def test_a_task_without_gradients_has_no_derived_one() -> None:
    assert derive_bench(bench(scaled(gradients=None))) is None


def test_an_upstream_gradient_of_stride_0_lies_in_memory_that_is_no_number() -> None:
    made = derive_bench(bench(scaled()))
    assert made is not None
    case = made.case(GateId.AGREEMENT, "stride 0", stride_0=True)
    up = made.args(case)[made.position("upstream of y")]
    assert isinstance(up, torch.Tensor)
    assert up.stride() == (0, 0)
    assert bool((up == 1).all())
    assert bool(up.as_strided((up.numel(),), (1,))[1:].isnan().all())


def result(status: GateStatus, **given: Any) -> GateResult:
    if status is GateStatus.FAIL:
        case = CaseRecord("case", {}, {}, "normal", 1)
        given |= {"counterexample": Counterexample(case, "wrong", ()), "failed": 1}
    if status is GateStatus.PASS:
        given = {"passed": 1, **given}
    return GateResult(GateId.LAYOUT, status, "", **{"reason": "why", **given})


@pytest.mark.parametrize(
    ("forward", "backward", "worse"),
    [
        (GateStatus.PASS, GateStatus.FAIL, GateStatus.FAIL),
        (GateStatus.FAIL, GateStatus.PASS, GateStatus.FAIL),
        (GateStatus.NOT_APPLICABLE, GateStatus.PASS, GateStatus.PASS),
        (GateStatus.PASS, GateStatus.INCONCLUSIVE, GateStatus.INCONCLUSIVE),
        (GateStatus.NOT_APPLICABLE, GateStatus.NOT_APPLICABLE, GateStatus.NOT_APPLICABLE),
    ],
)
def test_the_worse_of_two_results_counts(
    forward: GateStatus, backward: GateStatus, worse: GateStatus
) -> None:
    assert merged(result(forward), result(backward)).status is worse


def test_counts_add_up_and_what_was_not_asked_is_told() -> None:
    one = merged(result(GateStatus.PASS, passed=3), result(GateStatus.PASS, passed=4))
    assert (one.passed, one.summary) == (7, "7 cases")
    other = merged(result(GateStatus.NOT_APPLICABLE), result(GateStatus.PASS, passed=4))
    assert [(note.reason, note.count) for note in other.notes] == [("why", 1)]


def test_roundings_on_the_way_show_in_a_difference_of_large_terms() -> None:
    x = torch.tensor([1.0], dtype=torch.float64)
    with Roundings(0):
        difference = (x * 1000 + 1) - x * 1000
    assert 0 < abs(float(difference) - 1) < 4000 * STEP


def test_what_is_only_picked_is_not_rounded() -> None:
    x = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with Roundings(0):
        picked = x.t().amax(0)
    assert not bitwise_differs(picked, x.amax(1)).any()
