"""References are valid in float64, keep the dtype of their inputs, and change none of them."""

from __future__ import annotations

import pytest
import torch

from benchmarks.fuzzoracle.suite import HERE
from verifier.contract import load_task
from verifier.records import CaseRecord, DeviceMode, Language
from verifier.referee.bench import Bench, digest, load_reference

TASKS = sorted(path.name for path in (HERE / "tasks").iterdir() if path.is_dir())


def bench_of(slug: str) -> Bench:
    task = load_task(HERE / "tasks" / slug)
    return Bench(
        task.contract,
        load_reference(task),
        DeviceMode.CPU_INTERPRET,
        torch.device("cpu"),
        3,
        Language.TRITON,
    )


def cases(bench: Bench) -> list[CaseRecord]:
    dims = bench.contract.usual_dims()
    return [
        CaseRecord("case", dims, dtypes, "normal", 5)
        for dtypes in bench.contract.dtype_assignments()
    ]


@pytest.mark.parametrize("slug", TASKS)
def test_golden_has_the_contracts_shapes(slug: str) -> None:
    bench = bench_of(slug)
    for case in cases(bench):
        golden = bench.golden(bench.args(case))
        assert not isinstance(golden, str), golden
        shapes = [tuple(tensor.shape) for tensor in golden]
        assert shapes == [bench.contract.shape(o, case.dims) for o in bench.contract.outputs]


@pytest.mark.parametrize("slug", TASKS)
def test_eager_is_close_to_golden_in_each_dtype(slug: str) -> None:
    bench = bench_of(slug)
    for case in cases(bench):
        args = bench.args(case)
        reply = bench.eager(args)
        assert reply.returned, reply.detail
        outputs = bench.results(case, args, reply)
        assert isinstance(outputs, tuple), outputs
        golden = bench.golden(args)
        for want, got in zip(golden, outputs, strict=True):
            assert isinstance(want, torch.Tensor)
            assert torch.allclose(want.double(), got.double(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("slug", TASKS)
def test_a_reference_leaves_its_inputs_alone(slug: str) -> None:
    bench = bench_of(slug)
    for case in cases(bench):
        args = bench.args(case)
        before = digest(args)
        bench.reference(*args)
        assert digest(args) == before
