"""Sizes at which a kernel may take another path, and what becomes of sizes that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from verifier.contract import load_task
from verifier.gate import Finding
from verifier.records import CaseRecord, DeviceMode, GateId, GateStatus, Language
from verifier.referee.bench import Bench, load_reference
from verifier.referee.generator import Stream
from verifier.referee.paths import KINDS, PATH, listed_dims, other_paths
from verifier.referee.refusals import asked_instead, settled
from verifier.subject import ORDINARY, Arg, CallOptions, Reply, ReplyKind

TASKS = Path(__file__).parents[1] / "gates" / "tasks"
VARIED = ("row_softmax", "matmul", "relu", "scatter_add", "causal_mix")
SEEDS = range(6)


def bench_of(task: str, *, seed: int = 1, constants: tuple[int, ...] = ()) -> Bench:
    loaded = load_task(TASKS / task)
    return Bench(
        contract=loaded.contract,
        reference=load_reference(loaded),
        mode=DeviceMode.CPU_INTERPRET,
        device=torch.device("cpu"),
        seed=seed,
        language=Language.TRITON,
        constants=constants,
    )


@pytest.mark.parametrize("task", VARIED)
def test_sizes_are_within_the_contract_and_the_budget(task: str) -> None:
    for seed in SEEDS:
        bench = bench_of(task, seed=seed)
        paths = other_paths(bench, GateId.NONFINITE)
        assert paths
        assert all(bench.contract.allows(path.dims) for path in paths)
        assert all(0 < bench.elements(path.dims) <= bench.budget // 2 for path in paths)


def test_every_kind_lies_on_its_own_side_of_the_greatest_tile() -> None:
    for seed in SEEDS:
        bench = bench_of("row_softmax", seed=seed, constants=(64, 256))
        sizes = {path.name: path.dims["N"] for path in other_paths(bench, GateId.LAYOUT)}
        assert list(sizes) == [kind.name for kind in KINDS]
        for kind in KINDS:
            assert (sizes[kind.name] > 256) is kind.long
            assert (sizes[kind.name] % 16 != 0) is kind.ragged


def test_sizes_are_drawn_for_each_seed_and_each_gate() -> None:
    def drawn(seed: int, gate: GateId) -> list[dict[str, int]]:
        return [path.dims for path in other_paths(bench_of("row_softmax", seed=seed), gate)]

    assert drawn(1, GateId.LAYOUT) == drawn(1, GateId.LAYOUT)
    assert drawn(1, GateId.LAYOUT) != drawn(2, GateId.LAYOUT)
    assert drawn(1, GateId.LAYOUT) != drawn(1, GateId.NONFINITE)


def test_the_dim_of_a_sum_has_room_for_its_terms_at_every_size() -> None:
    for seed in SEEDS:
        paths = other_paths(bench_of("matmul", seed=seed), GateId.ACCUMULATION, "K", 17)
        assert all(path.dims["K"] >= 16 for path in paths)


def test_a_fixed_shape_has_no_other_paths() -> None:
    bench = bench_of("row_softmax")
    behaviour = replace(bench.contract.behaviour, fixed_shape=True)
    bench = replace(bench, contract=replace(bench.contract, behaviour=behaviour))
    assert other_paths(bench, GateId.LAYOUT) == []


def test_listed_sizes_hold_every_size_that_the_contract_names() -> None:
    bench = bench_of("row_softmax")
    sizes = {dims["N"] for dims in listed_dims(bench, Stream(1), most=9)}
    assert sizes == set(bench.contract.dims["N"].candidates)


class Picky:
    """A subject that refuses what ``refuses`` says of the arguments."""

    name = "kernel"

    def __init__(self, refuses: Callable[[torch.Tensor, bool], bool]) -> None:
        self.refuses = refuses
        self.fresh = True

    def restart(self) -> None:
        self.fresh = True

    def other(self) -> Picky:
        self.fresh = True
        return self

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        fresh, self.fresh = self.fresh, False
        (x,) = args
        assert isinstance(x, torch.Tensor)
        if self.refuses(x, fresh):
            return Reply(ReplyKind.RAISED, "ValueError: not supported")
        return Reply(ReplyKind.RETURNED, outputs=(x,))


def _refusal(subject: Picky) -> Finding:
    bench = bench_of("row_softmax")
    case = bench.case(GateId.NONFINITE, "special")
    args = [torch.full((8, 128), float("nan"))]
    finding = bench.refused_values(case, subject.call(args), subject)
    assert finding is not None
    return finding


def test_refusing_special_values_alone_is_a_failure() -> None:
    finding = _refusal(Picky(lambda x, fresh: bool(x.isnan().any())))
    assert finding.failed
    assert "takes ordinary values" in finding.detail


def test_refusing_whatever_follows_in_the_same_process_is_seen_through() -> None:
    assert _refusal(Picky(lambda x, fresh: bool(x.isnan().any()) or not fresh)).failed


def test_refusing_a_size_whatever_it_holds_is_no_failure() -> None:
    finding = _refusal(Picky(lambda x, fresh: True))
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert finding.refused_at is not None


def _refused(bench: Bench, dims: dict[str, int]) -> tuple[CaseRecord, Finding]:
    case = bench.case(GateId.NONFINITE, "some", dims=dims)
    finding = bench.refused(Reply(ReplyKind.RAISED, "ValueError: no"), case)
    assert finding is not None
    return case, finding


def test_what_is_refused_elsewhere_is_asked_at_the_usual_size_and_at_named_ones() -> None:
    bench = bench_of("row_softmax")
    case, finding = _refused(bench, {"M": 2, "N": 33})
    others = asked_instead(bench, case, finding)
    assert others[0].dims == bench.contract.usual_dims()
    assert len(others) > 1
    assert all(asked_instead(bench, other, finding) == [] for other in others)
    path = replace(case, params={PATH: "ragged and long"})
    assert len(asked_instead(bench, path, finding)) > len(others)


def test_refusing_the_usual_size_leaves_the_case_open() -> None:
    bench = bench_of("row_softmax")
    case, finding = _refused(bench, bench.contract.usual_dims())
    assert settled(bench, case, finding).status is GateStatus.INCONCLUSIVE
    case, finding = _refused(bench, {"M": 2, "N": 33})
    assert settled(bench, case, finding) is finding
