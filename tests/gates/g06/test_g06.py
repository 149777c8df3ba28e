"""Gate 6 on kernels that add in half precision, and on honest ones in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gates.caged import judge_kernel
from tests.gates.inprocess import judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates import g06_accumulation
from verifier.gates.g06_accumulation import GATE
from verifier.records import CaseRecord, GateStatus
from verifier.referee.bench import Bench
from verifier.subject import ORDINARY, Arg, CallOptions, Reply

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


EXACT = ["violator", "violator_lanes", "violator_tree", "violator_matmul", "violator_scatter"]


@pytest.mark.parametrize("task", ["row_sum", "row_softmax", "matmul", "rms", "cumsum"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_sum_that_comes_out_inexact_is_a_hard_failure(name: str, sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / f"{name}.py")
    assert all(finding.hard for _, finding in judged.failures)


def _probes(bench: Bench) -> list[tuple[CaseRecord, torch.Tensor]]:
    """Each case of a plain sum with its rows of terms."""
    found = []
    for case in GATE.cases(bench):
        reduction = bench.contract.behaviour.reductions[case.params["reduction"]]
        rows = g06_accumulation._probe_args(bench, case, reduction)[0]
        assert isinstance(rows, torch.Tensor)
        found.append((case, rows))
    return found


def test_every_partial_sum_is_exact_in_fp32_in_every_order() -> None:
    """Not even the sum of all absolute values leaves fp32's integers."""
    for _, rows in _probes(make_bench("row_sum")):
        assert float(rows.double().abs().sum(dim=1).max()) < 2**24
        assert torch.equal(rows, rows.round())


def _fp16_tree(row: torch.Tensor) -> torch.Tensor:
    while len(row) > 1:
        row = row[0::2] + row[1::2]
    return row[0]


def _fp16_carry(row: torch.Tensor, block: int) -> torch.Tensor:
    carry = torch.zeros((), dtype=torch.float16)
    for part in torch.split(row, block):
        carry = (carry.float() + part.float().sum()).half()
    return carry


def _fp16_parts(row: torch.Tensor, block: int) -> torch.Tensor:
    """fp16 partial sums added up in fp32: the mildest of the narrow schemes."""
    return (
        torch.stack([part.float().sum().half() for part in torch.split(row, block)]).float().sum()
    )


@pytest.mark.parametrize("block", [1, 16, 32, 64, 128, 256, 1024])
def test_a_carry_in_fp16_between_blocks_of_any_width_is_seen(block: int) -> None:
    assert any(_lost(row, _fp16_carry(row, block)) for row in _half_rows())


def test_a_tree_in_fp16_is_seen() -> None:
    assert any(_lost(row, _fp16_tree(row)) for row in _half_rows())


@pytest.mark.parametrize("block", [16, 64, 256, 1024])
def test_partial_sums_stored_in_fp16_are_seen(block: int) -> None:
    assert any(_lost(row, _fp16_parts(row, block)) for row in _half_rows())


def _half_rows() -> list[torch.Tensor]:
    probes = _probes(make_bench("row_sum"))
    return [row for case, rows in probes for row in rows if case.dtypes["T"] == "float16"]


def _lost(row: torch.Tensor, got: torch.Tensor) -> bool:
    return bool(got.half() != row.double().sum().half())


def test_declared_half_accumulation_is_reported_as_declared() -> None:
    bench = make_bench("row_sum")
    behaviour = replace(bench.contract.behaviour, accumulate="float16")
    bench = replace(bench, contract=replace(bench.contract, behaviour=behaviour))
    assert "as declared" in str(GATE.applies(bench))


def test_an_op_without_a_sum_is_not_asked() -> None:
    assert GATE.applies(make_bench("relu")) == "the op declares no sum"


def test_either_factor_of_a_product_carries_the_terms() -> None:
    carriers = {case.params["terms_in"] for case in GATE.cases(make_bench("matmul"))}
    assert carriers == {"a", "b"}


def test_sums_are_long_and_powers_of_two_and_on_other_paths_of_any_length() -> None:
    lengths = {case.dims["N"] for case in GATE.cases(make_bench("row_sum"))}
    assert max(lengths) >= 2048
    assert 256 in lengths
    assert any(length % 2 for length in lengths)


def test_the_probe_is_as_long_as_the_contract_allows() -> None:
    lengths = {case.dims["T"] for case in GATE.cases(make_bench("scatter_add"))}
    assert max(lengths) == 1024


class Scaled:
    """Eager, with every value too large by one part in ``part``."""

    name = "kernel"

    def __init__(self, bench: Bench, part: float) -> None:
        self._eager, self._part = bench.new_eager(), part

    def restart(self) -> None:
        """Nothing to restart."""

    def other(self) -> Scaled:
        return self

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        reply = self._eager.call(args, options)
        outputs = tuple(
            (out.double() * (1 + 1 / self._part)).to(out.dtype) for out in reply.outputs
        )
        return replace(reply, outputs=outputs)


def test_equal_terms_that_round_the_same_way_in_fp32_are_no_failure() -> None:
    """4096 equal terms may be off by 4096 * 2**-24 in an honest fp32 loop, seen on a GPU."""
    bench = make_bench("row_softmax")
    cases = [case for case in GATE.cases(bench) if case.dtypes["T"] == "float32"]
    assert cases
    for case in cases:
        assert GATE.judge(bench, case, Scaled(bench, 2.0**13)).passed
        assert GATE.judge(bench, case, Scaled(bench, 2.0**10)).failed
