"""The bench's odd sizes, its view of form, conditioning, and the comparator's allowance."""

from __future__ import annotations

from pathlib import Path

import torch

from verifier.contract import Tolerance, load_task
from verifier.gate import Finding
from verifier.records import DeviceMode, GateId, GateStatus, Language
from verifier.referee.bench import Bench, digest, load_reference
from verifier.referee.compare import Rule, allowance, check_numbers
from verifier.subject import Reply, ReplyKind

TASKS = Path(__file__).parents[1] / "gates" / "tasks"


def bench_of(task: str) -> Bench:
    loaded = load_task(TASKS / task)
    return Bench(
        contract=loaded.contract,
        reference=load_reference(loaded),
        mode=DeviceMode.CPU_INTERPRET,
        device=torch.device("cpu"),
        seed=1,
        language=Language.TRITON,
    )


def test_odd_dims_are_the_greatest_odd_candidates() -> None:
    assert bench_of("row_softmax").odd_dims() == {"M": 3, "N": 7}


def test_odd_dims_fall_back_on_the_small_ones() -> None:
    bench = bench_of("causal_sum")
    assert bench.odd_dims() == {"B": bench.small_dims()["B"], "T": 7}


def test_a_wrong_shape_is_left_to_other_gates() -> None:
    bench = bench_of("row_softmax")
    case = bench.case(GateId.LAYOUT, "form")
    args = bench.args(case)
    finding = bench.formed(case, args, Reply(ReplyKind.RETURNED, outputs=(torch.zeros(1),)))
    assert isinstance(finding, Finding)
    assert finding.status is GateStatus.NOT_APPLICABLE


def test_a_crash_is_left_to_nobody() -> None:
    bench = bench_of("row_softmax")
    case = bench.case(GateId.LAYOUT, "form")
    finding = bench.formed(case, bench.args(case), Reply(ReplyKind.CRASHED, "signal 11"))
    assert isinstance(finding, Finding)
    assert finding.failed


def test_sensitivity_grows_where_the_mean_hides_the_values() -> None:
    bench = bench_of("row_layernorm")
    plain = torch.linspace(-1, 1, 32).reshape(2, 16)
    (near,) = bench.sensitivity([plain])
    (far,) = bench.sensitivity([plain + 1e4])
    assert 0 < near < 1e-5 < far


def test_sensitivity_is_infinite_where_the_reference_refuses() -> None:
    bench = bench_of("scale_add")
    assert bench.sensitivity([torch.ones(2, 3), torch.ones(4, 5)]) == (float("inf"),)


def test_allowance_is_the_error_at_which_the_comparator_says_no() -> None:
    golden = torch.tensor([1.0, -3.0], dtype=torch.float64)
    eager = torch.tensor([1.0, -3.0]) + 1e-3
    bound = allowance(golden, eager, torch.float32, Rule()).atol
    within, beyond = golden + 0.9 * bound, golden + 1.1 * bound
    assert check_numbers("y", golden, eager, within.float(), Rule()).passed
    assert check_numbers("y", golden, eager, beyond.float(), Rule()).failed


def test_allowance_of_a_contract_with_a_tolerance_is_that_tolerance() -> None:
    tolerance = Tolerance(0.5, 0.25)
    rule = Rule(tolerance=tolerance)
    assert allowance(torch.ones(1), torch.ones(1), torch.float16, rule) == tolerance


def test_the_digest_of_a_single_value_does_not_depend_on_its_stride() -> None:
    strided = torch.full((1, 2), 3.0)[..., ::2]
    assert strided.is_contiguous()
    assert strided.stride(-1) == 2
    assert digest([strided]) == digest([torch.full((1, 1), 3.0)])
