"""Gate 4 on kernels made for one shape, on kernels that say so, and on honest ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.caged import bench_for, judge_kernel
from tests.gates.inprocess import judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.contract import Behaviour, Dim, Domain, DomainKind, Input
from verifier.gates import g04_shapes
from verifier.gates.g04_shapes import GATE
from verifier.records import GateStatus
from verifier.referee.bench import Bench
from verifier.subject import Arg

HERE = Path(__file__).parent
VIOLATORS = sorted(HERE.glob("violator*.py"))
TWINS = sorted(HERE.glob("twin*.py"))


@pytest.mark.parametrize("kernel", VIOLATORS, ids=lambda path: path.stem)
def test_violator_fails(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.FAIL, judged.explain()


@pytest.mark.parametrize("kernel", TWINS, ids=lambda path: path.stem)
def test_twin_passes(kernel: Path, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, kernel)
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.parametrize("task", ["row_softmax", "row_sum", "relu", "matmul", "scatter_add"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_grossly_wrong_values_are_a_hard_failure(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_floor.py")
    assert all(finding.hard for _, finding in judged.failures)


def test_a_crash_is_a_hard_failure_that_names_the_exit(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_crash.py")
    assert all("crashed" in finding.detail for _, finding in judged.failures)
    assert all(finding.hard for _, finding in judged.failures)


def test_a_refusal_is_no_failure_and_is_counted_as_nothing(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "twin_refuses.py")
    refused = [f for case, f in judged.findings if case.dims.get("N", 0) > 256]
    assert refused
    assert {finding.status for finding in refused} == {GateStatus.NOT_APPLICABLE}


def test_shapes_lie_around_the_kernels_own_tiles() -> None:
    bench = replace(bench_for(HERE / "twin_floor.py"), constants=(32,))
    depths = {case.dims["K"] for case in GATE.cases(bench)}
    assert {1, 31, 33, 65} <= depths


def test_empty_tensors_are_tried_where_the_contract_admits_them() -> None:
    sizes = {case.dims["N"] for case in GATE.cases(make_bench("relu"))}
    assert 0 in sizes
    assert 0 not in {case.dims["N"] for case in GATE.cases(make_bench("row_softmax"))}


def test_no_shape_breaks_the_contract() -> None:
    bench = make_bench("scatter_add")
    assert all(bench.contract.allows(case.dims) for case in GATE.cases(bench))


def test_a_fixed_shape_is_called_specialised() -> None:
    bench = make_bench("relu")
    contract = replace(bench.contract, behaviour=Behaviour(fixed_shape=True))
    assert "specialised" in str(GATE.applies(replace(bench, contract=contract)))


def _ragged() -> Bench:
    bench = make_bench("relu")
    offsets = Input("offsets", (5,), "int64", Domain(kind=DomainKind.OFFSETS, high="N"))
    dims = {"N": Dim(candidates=(16,), usual=16)}
    contract = replace(bench.contract, inputs=(*bench.contract.inputs, offsets), dims=dims)
    return replace(bench, contract=contract)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("first", [0, 0, 0, 0, 16]), ("last", [0, 16, 16, 16, 16]), ("around", [0, 0, 16, 16, 16])],
)
def test_ragged_inputs_get_empty_sequences(place: str, expected: list[int]) -> None:
    bench = _ragged()
    case = next(c for c in GATE.cases(bench) if c.params.get("empty_sequences") == place)
    args: list[Arg] = bench.args(case)
    g04_shapes._collapse(bench, case, args)
    offsets = bench.named(args)["offsets"]
    assert isinstance(offsets, torch.Tensor)
    assert offsets.tolist() == expected
