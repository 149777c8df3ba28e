"""Gate 5 on kernels that cut dtypes down, and on honest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.gates.caged import judge_kernel
from tests.gates.inprocess import CUDA, judge_eager, make_bench
from verifier.candidate.client import Sandbox
from verifier.gates.g05_dtypes import GATE, cut_to_tf32
from verifier.records import DeviceMode, GateStatus
from verifier.referee.eager import Eager
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


@pytest.mark.parametrize("task", ["row_softmax", "row_sum", "relu", "matmul", "add_int64"])
def test_eager_passes(task: str) -> None:
    judged = judge_eager(GATE, make_bench(task))
    assert judged.status is GateStatus.PASS, judged.explain()


def test_a_silent_cut_is_a_hard_failure_with_both_figures(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator.py", only="low bits")
    assert judged.failures
    assert all(finding.hard for _, finding in judged.failures)
    assert all("cut inputs by" in finding.detail for _, finding in judged.failures)


def test_another_output_dtype_is_named(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_output.py")
    assert "y is float32, not float16" in judged.explain()


def test_refusing_a_declared_dtype_is_a_failure_here(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "violator_refuses.py")
    assert "refuses a declared dtype" in judged.explain()


def test_tf32_keeps_ten_mantissa_bits_rounded_to_even() -> None:
    values = torch.tensor([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-12, -1 - 2**-20])
    cut = torch.tensor([1 + 2**-10, 1.0, 1 + 2**-9, 1.0, -1.0])
    assert torch.equal(cut_to_tf32(values), cut)


def test_no_probe_where_the_contract_permits_tf32() -> None:
    bench = make_bench("matmul")
    behaviour = replace(bench.contract.behaviour, allow_tf32=True)
    bench = replace(bench, contract=replace(bench.contract, behaviour=behaviour))
    assert not any("low bits" in case.label for case in GATE.cases(bench))


def test_the_interpreter_does_not_claim_to_have_seen_no_tf32() -> None:
    bench = replace(make_bench("matmul"), mode=DeviceMode.CPU_INTERPRET)
    case = next(case for case in GATE.cases(bench) if "tl.dot" in case.label)
    finding = GATE.judge(bench, case, bench.new_eager())
    assert finding.status is GateStatus.NOT_APPLICABLE
    assert "on a GPU only" in finding.detail


def test_bf16_is_not_judged_by_the_interpreter() -> None:
    bench = replace(make_bench("relu"), mode=DeviceMode.CPU_INTERPRET)
    case = next(case for case in GATE.cases(bench) if case.label == "bfloat16")
    assert "bf16" in str(bench.cannot_judge(case))


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="NO TF32 TEST: needs a CUDA device")
def test_tf32_shows_on_a_gpu(sandbox: Sandbox) -> None:
    judged = judge_kernel(GATE, sandbox, HERE / "kernels" / "tf32.py", only="low bits")
    assert judged.status is GateStatus.FAIL, judged.explain()


class InTurn(Eager):
    """Honest: adds one product after the other in fp32, which loses more than adding in pairs."""

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        a, b = (arg.numpy() for arg in args if isinstance(arg, torch.Tensor))
        terms = np.multiply(a[:, :, None], b[None], dtype=np.float32)
        sums = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
        return replace(super().call(args, options), outputs=(torch.from_numpy(sums.copy()),))


@pytest.mark.parametrize("length", [64, 12288])
def test_what_adding_in_turn_loses_is_no_cut(length: int) -> None:
    bench = make_bench("matmul")
    probes = [case for case in GATE.cases(bench) if "low bits, low bits" in case.label]
    case = replace(probes[0], dims={"M": 4, "N": 4, "K": length}, dtypes={"T": "float32"})
    finding = GATE.judge(bench, case, InTurn(bench.reference, bench.device, allow_tf32=False))
    assert finding.status is not GateStatus.FAIL, finding.detail
