"""The comparator, value by value."""

from __future__ import annotations

import math

import pytest
import torch

from verifier.contract import Tolerance
from verifier.gate import Finding
from verifier.records import GateStatus
from verifier.referee.compare import Rule, bitwise, check_output, cut, first_index, worst

NAN, INF = math.nan, math.inf


def check(
    golden: list[float],
    got: list[float],
    *,
    eager: list[float] | None = None,
    dtype: torch.dtype = torch.float32,
    rule: Rule | None = None,
) -> Finding:
    truth = torch.tensor(golden, dtype=torch.float64)
    reference = torch.tensor(golden if eager is None else eager, dtype=dtype)
    return check_output("out", truth, reference, torch.tensor(got, dtype=dtype), rule or Rule())


def test_equal_values_pass() -> None:
    assert check([1.0, -2.0], [1.0, -2.0]).passed


def test_twice_the_error_of_eager_passes_and_thrice_fails() -> None:
    golden, eager = [1.0, 100.0], [1.01, 100.0]
    assert check(golden, [1.0, 100.0199], eager=eager).passed
    finding = check(golden, [1.0, 100.031], eager=eager)
    assert finding.failed
    assert not finding.hard
    assert finding.index == (1,)


def test_a_contract_tolerance_replaces_the_rule() -> None:
    rule = Rule(tolerance=Tolerance(atol=0.5))
    assert check([1.0], [1.4], rule=rule).passed
    assert check([1.0], [1.6], rule=rule).failed


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_non_finite_value_for_a_finite_one_is_a_hard_failure(bad: float) -> None:
    finding = check([1.0, 2.0, 3.0], [1.0, bad, 3.0])
    assert finding.failed
    assert finding.hard
    assert finding.index == (1,)
    assert finding.expected == "2.0"


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_finite_value_for_a_non_finite_one_is_a_hard_failure(bad: float) -> None:
    finding = check([1.0, bad], [1.0, 2.0])
    assert finding.failed
    assert finding.hard


def test_the_same_non_finite_values_pass() -> None:
    assert check([NAN, INF, -INF, 1.0], [NAN, INF, -INF, 1.0]).passed


def test_overflow_in_the_dtype_is_no_error() -> None:
    assert check([70000.0, 1.0], [INF, 1.0], dtype=torch.float16).passed


def test_all_zeros_is_a_hard_failure_even_with_a_wide_tolerance() -> None:
    finding = check([1.0, 1.0], [0.0, 0.0])
    assert finding.failed
    assert finding.hard


def test_an_ill_conditioned_case_is_inconclusive() -> None:
    assert check([1.0], [5.0], eager=[1.5]).status is GateStatus.INCONCLUSIVE


def test_integers_must_be_equal() -> None:
    golden = torch.tensor([1, 2, 3])
    assert check_output("out", golden, golden, golden.clone(), Rule()).passed
    finding = check_output("out", golden, golden, torch.tensor([1, 2, 4]), Rule())
    assert finding.hard
    assert finding.index == (2,)


def test_complex_values_are_compared_by_part() -> None:
    golden = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex128)
    single = golden.to(torch.complex64)
    assert check_output("out", golden, single, single, Rule()).passed
    wrong = torch.tensor([1 + 2j, 3 + 5j], dtype=torch.complex64)
    assert check_output("out", golden, single, wrong, Rule()).index == (1,)


def test_empty_outputs_pass() -> None:
    assert check([], []).passed


def test_bitwise_sees_the_sign_of_zero_and_forgives_nan_payloads() -> None:
    zero, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    assert bitwise("out", zero, minus, "repeat").hard
    odd_nan = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert bitwise("out", torch.tensor([NAN]), odd_nan, "repeat").passed


def test_bitwise_on_another_shape_or_dtype_fails() -> None:
    one = torch.ones(2)
    assert bitwise("out", one, torch.ones(3), "repeat").failed
    assert bitwise("out", one, one.double(), "repeat").failed


def test_the_first_index_is_the_first_in_row_major_order() -> None:
    mask = torch.zeros(3, 4, dtype=torch.bool)
    mask[2, 1] = mask[1, 3] = True
    assert first_index(mask) == (1, 3)


def test_a_slice_lies_around_the_index() -> None:
    piece = cut("x", torch.arange(200.0).reshape(2, 100), (1, 99))
    assert piece.start == (1, 92)
    assert piece.values[-1] == "199.0"
    assert len(piece.values) == 8
    assert cut("x", torch.tensor(3.0), ()).values == ("3.0",)


def test_a_hard_failure_outranks_a_soft_one() -> None:
    soft = Finding(GateStatus.FAIL, "soft")
    hard = Finding(GateStatus.FAIL, "hard", hard=True)
    good = Finding(GateStatus.PASS)
    open_ = Finding(GateStatus.INCONCLUSIVE, "open")
    assert worst([good, soft, hard]) is hard
    assert worst([good, open_]) is open_
    assert worst([good]) is good
