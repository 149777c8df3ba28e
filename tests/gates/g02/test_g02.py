"""Gate 2 on kernels that swallow or leak NaN, and on honest twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.contract import Domain, NanPolicy
from verifier.gates.g02_nonfinite import GATE
from verifier.records import GateStatus
from verifier.referee.bench import Bench

HERE = Path(__file__).parent
VIOLATORS = sorted(HERE.glob("violator*.py"))
TWINS = sorted(HERE.glob("twin*.py"))


@pytest.mark.parametrize("kernel", VIOLATORS, ids=lambda path: path.stem)
def test_violator_fails_hard(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.FAIL, judged.explain()
    assert all(finding.hard for _, finding in judged.failures)


@pytest.mark.parametrize("kernel", TWINS, ids=lambda path: path.stem)
def test_twin_passes(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.parametrize("task", ["row_softmax", "relu", "row_amax", "matmul", "causal_mix"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_the_first_offending_index_is_reported(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py", only="NaN in the last lane")
    _, finding = judged.failures[0]
    assert finding.output == "y"
    assert finding.index == (7,)
    assert finding.expected == "nan"


def test_a_kernel_that_skips_masked_keys_is_not_accused_where_eager_leaks(
    sandbox: Sandbox,
) -> None:
    bench = make_bench("causal_mix")
    args = bench.args(next(case for case in GATE.cases(bench) if "last lane in v" in case.label))
    value = bench.named(args)["v"]
    assert isinstance(value, torch.Tensor)
    value[-1, -1] = float("nan")
    leaked = bench.eager(args).outputs[0]
    assert leaked[:, -1].isnan().all()
    judged = judge_kernel(GATE, sandbox, HERE / "twin_mask.py", only="NaN in the last lane in v")
    assert judged.status is GateStatus.PASS


def _with_nan_policy(policy: NanPolicy) -> Bench:
    bench = make_bench("row_amax")
    behaviour = replace(bench.contract.behaviour, nan=policy)
    return replace(bench, contract=replace(bench.contract, behaviour=behaviour))


def test_no_nan_is_planted_where_the_contract_leaves_it_undefined() -> None:
    labels = [case.label for case in GATE.cases(_with_nan_policy(NanPolicy.UNDEFINED))]
    assert labels
    assert not any("NaN" in label or "mixed" in label for label in labels)


def test_bounded_domains_make_the_gate_not_applicable() -> None:
    bench = make_bench("relu")
    bounded = replace(bench.contract.inputs[0], domain=Domain(low=0.0, high=1.0))
    bench = replace(bench, contract=replace(bench.contract, inputs=(bounded,)))
    assert GATE.applies(bench) == "the contract's domains exclude non-finite values"


def test_every_special_value_is_planted() -> None:
    labels = " ".join(case.label for case in GATE.cases(bench_for(HERE / "violator.py")))
    for word in ("NaN first", "last lane", "tile's edge", "+Inf and -Inf", "a row of -Inf"):
        assert word in labels


def test_zero_times_infinity_needs_two_inputs() -> None:
    matmul = [case.label for case in GATE.cases(make_bench("matmul"))]
    alone = [case.label for case in GATE.cases(make_bench("relu"))]
    assert any(label.startswith("0 * Inf") for label in matmul)
    assert not any(label.startswith("0 * Inf") for label in alone)
