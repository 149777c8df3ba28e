"""Seeded fuzzing: the same cases everywhere, the smallest failing shape, replays byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.fuzzoracle.suite import HERE
from verifier.fuzz import Layout, Strategy, Tally, fuzz, fuzz_args, fuzz_case, with_tolerances
from verifier.pipeline import build_bench
from verifier.records import CaseRecord, DeviceMode
from verifier.referee.bench import Bench, digest
from verifier.session import Job, Session, make_request, read_kernel
from verifier.source import read_source

PINNED = {
    (Strategy.BOUNDARY, 0): (
        {"B": 1, "S": 7, "H": 1025},
        "85af36ffbad32272ae211f7891170b810b341630f98062b04246aa178c179ae1",
    ),
    (Strategy.ADVERSARIAL, 8): (
        {"B": 2, "S": 7, "H": 3},
        "ef7d0901aaada94be0f3ef73e6e703fc4c429a88fddf89674e8b607e35fbc5b6",
    ),
}


def bench_of(task: str, label: str, group: str = "p1_replica") -> Bench:
    kernel = HERE / "kernels" / group / f"{label}.py"
    request = make_request(
        Job(HERE / "tasks" / task, kernel, seed=1), read_source(read_kernel(kernel))
    )
    return build_bench(request, DeviceMode.CPU_INTERPRET, torch.device("cpu"))


def fuzzed(
    session: Session,
    task: str,
    label: str,
    strategy: Strategy,
    *,
    group: str = "p1_replica",
    iterations: int = 30,
    seed: int = 3,
) -> Tally:
    source = read_kernel(HERE / "kernels" / group / f"{label}.py")
    candidate = session.sandbox.load(source=source, entry="run", convention="function")
    try:
        bench = bench_of(task, label, group)
        return fuzz(bench, candidate, seed=seed, iterations=iterations, strategy=strategy)
    finally:
        candidate.close()


# --- drawing


@pytest.mark.parametrize(("strategy", "number"), PINNED)
def test_the_bytes_of_a_case_are_these_on_every_machine(strategy: Strategy, number: int) -> None:
    bench = bench_of("softmax", "softmax_triton")
    case = fuzz_case(bench, strategy, 2026, number)
    assert (case.dims, digest(fuzz_args(bench, case))) == PINNED[strategy, number]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_case_is_within_the_contract_and_the_budget(strategy: Strategy) -> None:
    bench = bench_of("op-causal-attention", "causal_attention_honest", "illusions26")
    for number in range(60):
        dims = fuzz_case(bench, strategy, 5, number).dims
        assert bench.contract.allows(dims)
        assert bench.elements(dims) <= bench.budget


def test_regular_cases_have_sizes_that_are_powers_of_two() -> None:
    bench = bench_of("softmax", "softmax_triton")
    for number in range(40):
        dims = fuzz_case(bench, Strategy.REGULAR, 5, number).dims
        assert all(size & (size - 1) == 0 for size in dims.values())


def case_with(bench: Bench, **params: str) -> CaseRecord:
    plain: dict[str, Any] = {"plant": "", "layout": "dense"}
    return CaseRecord(
        "c",
        bench.contract.usual_dims(),
        bench.contract.usual_dtypes(),
        "normal",
        9,
        {**plain, **params},
    )


def test_planted_values_replace_a_few_and_only_where_the_domain_allows() -> None:
    bench = bench_of("op-cross-entropy", "cross_entropy_honest", "illusions26")
    logits, target = fuzz_args(bench, case_with(bench, plant="nan"))
    assert isinstance(logits, torch.Tensor)
    assert isinstance(target, torch.Tensor)
    assert 0 < int(logits.isnan().sum()) <= 1 + logits.numel() // 64
    assert int(target.min()) >= 0
    assert int(target.max()) < logits.shape[1]


@pytest.mark.parametrize("layout", list(Layout))
def test_a_layout_keeps_the_values(layout: Layout) -> None:
    bench = bench_of("matmul", "matmul_triton")
    plain = fuzz_args(bench, case_with(bench))
    laid = fuzz_args(bench, case_with(bench, layout=layout.value))
    for left, right in zip(plain, laid, strict=True):
        assert isinstance(left, torch.Tensor)
        assert isinstance(right, torch.Tensor)
        assert torch.equal(left, right)


@pytest.mark.parametrize("layout", [Layout.TRANSPOSED, Layout.STEP2])
def test_a_strided_layout_is_not_contiguous(layout: Layout) -> None:
    bench = bench_of("matmul", "matmul_triton")
    for arg in fuzz_args(bench, case_with(bench, layout=layout.value)):
        assert isinstance(arg, torch.Tensor)
        assert not arg.is_contiguous()


# --- finding


def test_regular_shapes_find_no_tail_bug(verifier_session: Session) -> None:
    tally = fuzzed(verifier_session, "softmax", "softmax_triton_buggy", Strategy.REGULAR)
    assert (tally.failed, tally.passed) == (0, 30)


def test_boundary_shapes_find_the_tail_bug_and_its_smallest_shape(
    verifier_session: Session,
) -> None:
    tally = fuzzed(verifier_session, "softmax", "softmax_triton_buggy", Strategy.BOUNDARY)
    assert tally.failed > 0
    assert tally.failures[0].case.dims == {"B": 1, "S": 1, "H": 3}
    assert tally.failures[0].minimised_from


def test_planted_values_find_a_swallowed_nan(verifier_session: Session) -> None:
    tally = fuzzed(
        verifier_session,
        "op-relu",
        "relu_swallows_nan",
        Strategy.ADVERSARIAL,
        group="illusions26",
    )
    assert tally.failed > 0


def test_layouts_find_an_assumed_stride(verifier_session: Session) -> None:
    tally = fuzzed(
        verifier_session,
        "op-add-bcast",
        "add_bcast_assumes_dense",
        Strategy.MIXED,
        group="illusions26",
    )
    assert {example.case.params["layout"] for example in tally.failures} <= {"transposed", "step2"}
    assert tally.failures


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize(
    ("task", "label", "group"),
    [
        ("softmax", "softmax_triton", "p1_replica"),
        ("matmul", "matmul", "p1_replica"),
        ("op-layernorm", "layernorm_honest", "illusions26"),
        ("op-causal-attention", "causal_attention_honest", "illusions26"),
    ],
)
def test_a_control_passes_every_strategy(
    verifier_session: Session, task: str, label: str, group: str, strategy: Strategy
) -> None:
    tally = fuzzed(verifier_session, task, label, strategy, group=group)
    assert tally.failed == 0, tally.failures
    assert tally.passed > 0


def test_a_tolerance_of_the_callers_replaces_the_default_rule() -> None:
    request = make_request(
        Job(HERE / "tasks" / "softmax", Path("k.py"), seed=1), read_source(b"import triton")
    )
    task = with_tolerances(request.task, {"float32": 0.5})
    assert task.contract.tolerances["float32"].atol == 0.5
    assert task.digest == request.task.digest
