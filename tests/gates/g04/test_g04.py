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
from verifier.records import CaseRecord, DeviceMode, GateStatus
from verifier.referee import beyond as referee_beyond
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


@pytest.fixture
def beyond(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench that takes 2**13 elements for vast, so that a CPU can hold them."""
    monkeypatch.setattr(referee_beyond, "BEYOND", 1 << 13)
    return replace(make_bench("row_softmax"), mode=DeviceMode.CUDA)


def _beyond_case(bench: Bench) -> CaseRecord:
    return next(case for case in GATE.cases(bench) if case.params["xl"])


WRAPPING = b"""
import torch, triton, triton.language as tl
@triton.jit
def kernel(x, y, n, WRAP: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * n %% WRAP
    at = tl.arange(0, BLOCK)
    row = tl.load(x + start + at, mask=at < n, other=-float("inf")).to(tl.float32)
    power = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + start + at, (power / tl.sum(power, axis=0)).to(y.dtype.element_ty), mask=at < n)
def run(x):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, y, x.shape[1], WRAP=%d, BLOCK=block)
    return y
"""


@pytest.mark.parametrize(
    ("wrap", "status"), [(1 << 13, GateStatus.FAIL), (1 << 30, GateStatus.PASS)]
)
def test_offsets_that_wrap_around_beyond_the_edge_are_found(
    beyond: Bench, sandbox: Sandbox, wrap: int, status: GateStatus
) -> None:
    case = _beyond_case(beyond)
    candidate = sandbox.load(source=WRAPPING % wrap, entry="run")
    try:
        finding = GATE.judge(beyond, case, candidate)
    finally:
        candidate.close()
    assert finding.status is status, finding.detail
    assert GATE.judge(beyond, case, beyond.new_eager()).passed


def test_the_rows_at_both_sides_of_the_edge_are_read(beyond: Bench) -> None:
    case = _beyond_case(beyond)
    rows, edge = case.params["vast"]["rows"], (1 << 13) // case.dims["N"]
    assert {0, edge - 1, edge, edge + 1, case.params["vast"]["length"] - 1} <= set(rows)


@pytest.mark.parametrize("task", ["scatter_add", "silu_in_place", "causal_mix"])
def test_what_cannot_grow_in_rows_says_why(task: str) -> None:
    bench = replace(make_bench(task), mode=DeviceMode.CUDA)
    finding = GATE.judge(bench, _beyond_case(bench), bench.new_eager())
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert "row" in finding.detail


def test_without_a_gpu_nothing_is_vast() -> None:
    bench = make_bench("row_softmax")
    finding = GATE.judge(bench, _beyond_case(bench), bench.new_eager())
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert "on a GPU only" in finding.detail


def test_a_random_op_is_asked_for_its_shapes_alone() -> None:
    judged = judge_eager(GATE, make_bench("dropout"))
    assert judged.status is GateStatus.PASS, judged.explain()
    assert {f.status for _, f in judged.findings} <= {GateStatus.PASS, GateStatus.NOT_APPLICABLE}
