"""Gradients in half precision that sum over rows: whose error is whose, and what is too much.

The kernels here are plain torch in this process, so that bfloat16 can be judged without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
import torch

from verifier.candidate.backward import differentiated
from verifier.contract import Contract, parse_contract
from verifier.gate import Finding
from verifier.gradients import BackwardGate, GradientBench, derive_bench
from verifier.pipeline import GATES
from verifier.records import DeviceMode, GateId, GateStatus, Language
from verifier.referee.bench import Bench
from verifier.subject import ORDINARY, Arg, CallOptions, OutputInfo, Reply, ReplyKind

LAYER_NORM: Final[dict[str, Any]] = {
    "slug": "layer_norm",
    "title": "Layer norm",
    "category": "normalisation",
    "dims": {
        "M": {"candidates": [1, 3, 16], "usual": 16, "minimum": 1},
        "N": {"candidates": [7, 64], "usual": 64, "minimum": 2},
    },
    "dtypes": {
        "T": {"candidates": ["float32", "float16", "bfloat16"], "usual": "float32"},
        "W": {"candidates": ["float16"], "usual": "float16"},
    },
    "inputs": [
        {"name": "x", "shape": ["M", "N"], "dtype": "T"},
        {"name": "w", "shape": ["N"], "dtype": "T"},
        {"name": "b", "shape": ["N"], "dtype": "T"},
    ],
    "outputs": [{"name": "y", "shape": ["M", "N"], "dtype": "T"}],
    "gradients": {"inputs": ["x", "w", "b"]},
}
HALVES: Final = (torch.float16, torch.bfloat16)

Sums = Callable[[torch.Tensor, torch.dtype], torch.Tensor]
"""A weight's gradient from its terms (rows x columns, fp32) and the dtype that it is to have."""


def normed(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5)


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-5)


def in_steps(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same as operations that round one by one, and that take x wider than its weights."""
    return (normed(x) * w + b).to(x.dtype)


def wide(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return terms.sum(0)


def in_blocks(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([block.sum(0) for block in torch.split(terms, 5)]).sum(0)


def of_rounded_terms(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return terms.to(dtype).float().sum(0)


def carried_in_half(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    total = torch.zeros_like(terms[0], dtype=dtype)
    for row in terms:
        total = (total.float() + row).to(dtype)
    return total.float()


def without_the_least_row(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    least = terms.abs().sum(1).argmin() if len(terms) > 1 else 0
    return terms.sum(0) - (terms[least] if dtype in HALVES else 0.0)


def without_one_term(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    total = terms.sum(0)
    if dtype in HALVES:
        total[-1] -= terms[-1, -1]
    return total


@dataclass(frozen=True, slots=True)
class Backward:
    """Layer norm in fp32 with its gradients, rounded once, but for how it sums."""

    sums: Sums = wide
    mean: bool = True
    """Whether x's gradient has the term that comes from the mean."""
    name: str = "kernel"

    def restart(self) -> None:
        """Nothing is kept."""

    def other(self) -> Backward:
        return self

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        given = [arg for arg in args if isinstance(arg, torch.Tensor)]
        x, w, b, up = (arg.float() for arg in given)
        unit = normed(x)
        scaled = up * w
        dx = scaled - unit * (scaled * unit).mean(-1, keepdim=True)
        if self.mean or given[0].dtype not in HALVES:
            dx -= scaled.mean(-1, keepdim=True)
        dx *= torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
        dw, db = (self.sums(terms, given[1].dtype) for terms in (up * unit, up))
        made = (unit * w + b, dx, dw, db)
        outputs = tuple(
            one.to(like.dtype) for one, like in zip(made, (given[0], *given[:3]), strict=True)
        )
        infos = tuple(
            OutputInfo(one.stride(), "cpu", True, False, (), (), False) for one in outputs
        )
        return Reply(ReplyKind.RETURNED, outputs=outputs, infos=infos)


def gradient_bench(function: Any, **changes: Any) -> GradientBench:
    contract: Contract = parse_contract({**LAYER_NORM, **changes})
    cpu = torch.device("cpu")
    made = derive_bench(Bench(contract, function, DeviceMode.CPU_INTERPRET, cpu, 7, Language.TORCH))
    assert made is not None
    return made


def found(kernel: Backward, bench: GradientBench, dtype: str, *gates: GateId) -> Iterator[Finding]:
    for gate in gates or (GateId.AGREEMENT, GateId.SHAPES, GateId.ACCUMULATION):
        backward = BackwardGate(GATES[gate.number - 1])
        for case in backward.cases(bench):
            if case.dtypes["T"] == dtype and not case.params.get("passes"):
                yield backward.judge(bench, case, kernel)


MIXED: Final[Mapping[str, Any]] = {
    "inputs": [
        {"name": "x", "shape": ["M", "N"], "dtype": "T"},
        {"name": "w", "shape": ["N"], "dtype": "W"},
        {"name": "b", "shape": ["N"], "dtype": "W"},
    ]
}


@pytest.mark.parametrize("sums", [wide, in_blocks, of_rounded_terms])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_sum_in_fp32_is_accused_of_nothing(sums: Sums, dtype: str) -> None:
    bench = gradient_bench(reference)
    findings = list(found(Backward(sums), bench, dtype))
    assert any(finding.passed for finding in findings)
    assert not [one.detail for one in findings if one.failed]


@pytest.mark.parametrize("sums", [wide, in_blocks])
def test_half_weights_beside_wider_values_are_accused_of_nothing(sums: Sums) -> None:
    findings = list(found(Backward(sums), gradient_bench(in_steps, **MIXED), "float32"))
    assert any("512 terms" in finding.detail for finding in findings)
    assert not [one.detail for one in findings if one.failed]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "kernel",
    [
        Backward(mean=False),
        Backward(without_the_least_row),
        Backward(without_one_term),
    ],
    ids=["no term of the mean", "no least row", "no last term"],
)
def test_what_misses_a_term_in_half_precision_alone_is_wrong(kernel: Backward, dtype: str) -> None:
    bench = gradient_bench(reference)
    assert not [one.detail for one in found(kernel, bench, "float32") if one.failed]
    assert any(one.failed for one in found(kernel, bench, dtype, GateId.AGREEMENT))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_sum_carried_in_half_precision_fails_whatever_torch_does(dtype: str) -> None:
    bench = gradient_bench(reference)
    (finding,) = found(Backward(carried_in_half), bench, dtype, GateId.ACCUMULATION)
    assert finding.status is GateStatus.FAIL
    assert "one rounding of 512 terms" in finding.detail


def test_no_long_sum_is_asked_where_every_gradient_has_all_dims_or_the_contract_is_narrow() -> None:
    inputs = {"gradients": {"inputs": ["x"]}}
    narrow = {"behaviour": {"accumulate": "float16"}}
    gate = BackwardGate(GATES[GateId.ACCUMULATION.number - 1])
    assert gate.applies(gradient_bench(reference)) is None
    assert not list(gate.cases(gradient_bench(reference, **inputs)))
    assert gate.applies(gradient_bench(reference, **inputs))
    assert not list(gate.cases(gradient_bench(reference, **narrow)))


class Doubled(torch.autograd.Function):
    """Its gradient comes in another dtype than its input."""

    GIVES: torch.dtype = torch.float32

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> torch.Tensor:
        if torch._C._autograd._get_current_graph_task_keep_graph():
            raise RuntimeError("no graph may be kept")
        return (up[0].float() * (2 + 2.0**-12)).to(Doubled.GIVES)


PLAN: Final = {
    "arguments": 1,
    "results": 1,
    "inputs": [[0, "x"]],
    "weights": [],
    "outputs": [[0, "y"]],
}


def gradient_of(x: torch.Tensor, passes: int = 1) -> torch.Tensor:
    outputs: tuple[torch.Tensor, ...] = differentiated(Doubled.apply, PLAN)(
        x, torch.ones_like(x), passes
    )
    return outputs[1]


def test_a_wider_gradient_arrives_as_its_caller_gets_it_rounded_once() -> None:
    grad = gradient_of(torch.ones(3, dtype=torch.float16))
    assert grad.dtype is torch.float16
    assert torch.equal(grad, torch.full((3,), 2 + 2.0**-12).half())


def test_a_narrower_gradient_arrives_with_the_error_that_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Doubled, "GIVES", torch.float16)
    grad = gradient_of(torch.ones(3))
    assert grad.dtype is torch.float32
    assert bool((grad == 2).all())


def test_what_lets_no_graph_be_kept_is_asked_for_one_pass() -> None:
    assert gradient_of(torch.ones(3), passes=2).shape == (3,)
