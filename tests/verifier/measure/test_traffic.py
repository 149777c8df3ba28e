"""How many bytes must move and how much must be multiplied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from tests.gates.inprocess import make_bench
from verifier.measure.traffic import flops_of, read_shares, work_of
from verifier.records import CaseRecord
from verifier.referee.bench import Bench
from verifier.subject import Arg

MATMUL_DIMS = {"M": 8, "K": 16, "N": 4}


def drawn(bench: Bench, dims: dict[str, int]) -> list[Arg]:
    return bench.args(CaseRecord("time", dims, bench.contract.usual_dtypes(), "normal", 3))


@pytest.fixture
def relu() -> Bench:
    return make_bench("relu")


def shares(bench: Bench, reference: Callable[..., torch.Tensor]) -> dict[str, float]:
    return read_shares(bench.contract, reference, drawn(bench, bench.small_dims()))


def test_every_element_of_an_elementwise_input_is_read(relu: Bench) -> None:
    assert shares(relu, torch.relu) == {"x": 1.0}


def test_an_input_that_changes_nothing_need_not_be_read(relu: Bench) -> None:
    assert shares(relu, torch.zeros_like) == {"x": 0.0}


def test_of_an_input_that_is_used_in_part_only_that_share_counts(relu: Bench) -> None:
    def first_half(x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten()
        return torch.cat([flat[: len(flat) // 2], torch.zeros(len(flat) - len(flat) // 2)])

    assert 0.2 < shares(relu, first_half)["x"] < 0.8


def test_what_differs_from_call_to_call_tells_nothing(relu: Bench) -> None:
    assert shares(relu, torch.rand_like) == {}


def test_a_workload_reads_its_inputs_and_writes_its_outputs(relu: Bench) -> None:
    dims, dtypes = relu.small_dims(), relu.contract.usual_dtypes()
    work = work_of(relu.contract, torch.relu, drawn(relu, dims), dims, dtypes)
    nbytes = 4 * relu.elements(dims)
    assert (work.read_bytes, work.written_bytes) == (nbytes, nbytes)


def test_a_declared_product_counts_two_flops_a_term() -> None:
    contract = make_bench("matmul").contract
    dims = {name: MATMUL_DIMS.get(name, 1) for name in contract.dims}
    assert flops_of(contract, dims, contract.usual_dtypes()) == {"float32": 2 * 8 * 16 * 4}


def test_an_op_that_declares_no_product_has_no_flops() -> None:
    contract = make_bench("row_sum").contract
    assert flops_of(contract, contract.usual_dims(), {}) == {}


def test_a_causal_product_counts_half() -> None:
    contract = make_bench("matmul").contract
    causal = replace(contract.behaviour, causal=make_bench("causal_sum").contract.behaviour.causal)
    halved = replace(contract, behaviour=replace(causal, causal=()))
    dims = {name: MATMUL_DIMS.get(name, 1) for name in contract.dims}
    whole = flops_of(halved, dims, contract.usual_dtypes())["float32"]
    object.__setattr__(halved, "behaviour", causal)
    assert flops_of(halved, dims, contract.usual_dtypes())["float32"] == whole // 2
