"""Gate 6, accumulation precision: sums are carried in at least fp32.

The cancellation-integer probe: +C, a one in each block, -C, all else zero. Every partial sum is an
integer below 2**24, so any order of fp32 additions is exact; fp16 and bf16 lose the ones beside C.
The block-aware order catches a narrow carry between wide blocks, permutations catch trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import torch

from verifier.contract import DomainKind, Reduction, ReductionKind
from verifier.gate import Finding, not_applicable
from verifier.records import CaseRecord, GateId, GateInfo
from verifier.referee.bench import Bench
from verifier.referee.compare import bitwise, worst
from verifier.referee.generator import Stream
from verifier.referee.inputs import torch_dtype
from verifier.referee.probes import float_inputs, judged_dtypes
from verifier.subject import Arg, Subject

BIG: Final = 4096.0
LENGTH: Final = 4096
BLOCK: Final = 64
SHORTEST: Final = 16
"""A shorter sum has no room for the probe."""

ORDERS: Final = ("blocks", "permuted 1", "permuted 2", "permuted 3")
EXACT: Final = frozenset(
    {
        ReductionKind.SUM,
        ReductionKind.MEAN,
        ReductionKind.DOT,
        ReductionKind.SCATTER,
        ReductionKind.CUMULATIVE,
    }
)
"""Kinds in which the terms come through unchanged, so that the answer is exact."""

ROOT_BIG: Final = 64.0
FAR_BELOW: Final = -9.0
"""Logits this far below the greatest: each adds 1.2e-4 to a sum of about one."""


class Accumulation:
    """G6."""

    info = GateInfo(
        GateId.ACCUMULATION,
        "Accumulation precision",
        "sums are carried in fp32 or better, in any order",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Only to ops that declare a sum, and that promise to carry it widely."""
        behaviour = bench.contract.behaviour
        if not behaviour.reductions:
            return "the op declares no sum"
        if behaviour.accumulate not in {"float32", "float64"}:
            return f"as declared: the contract accumulates in {behaviour.accumulate}"
        return None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """Each declared sum, in each floating dtype judged here, in several orders of its terms."""
        for number, reduction in enumerate(bench.contract.behaviour.reductions):
            dims = _long_dims(bench, reduction)
            for dtypes in judged_dtypes(bench):
                if not float_inputs(bench, dtypes):
                    continue
                for order in _orders(reduction):
                    kind = "/".join(dtypes.values()) or "fixed dtypes"
                    label = f"{reduction.kind.value} over {reduction.dim}, {kind}, {order}"
                    yield bench.case(
                        self.info.id,
                        label,
                        dims=dims,
                        dtypes=dtypes,
                        fill="ones",
                        reduction=number,
                        order=order,
                    )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Bit-equality with the exact answer where the terms come through, else the comparator."""
        reduction = bench.contract.behaviour.reductions[case.params["reduction"]]
        length = case.dims[reduction.dim]
        if length < SHORTEST:
            return not_applicable(f"{length} terms are too few to lose any")
        args = _probe_args(bench, case, reduction)
        reply = subject.call(args)
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return bench.refused(reply) or outputs
        if case.params["order"] == "equal" or reduction.kind in EXACT:
            return _exactly(bench, args, outputs)
        return bench.compare(case, args, outputs)


GATE: Final = Accumulation()


def _orders(reduction: Reduction) -> tuple[str, ...]:
    if reduction.kind is ReductionKind.SOFTMAX:
        return ("equal", "first", "permuted 1")
    if reduction.kind is ReductionKind.SUM_OF_SQUARES:
        return ("blocks", "permuted 1")
    return ORDERS


def _long_dims(bench: Bench, reduction: Reduction) -> dict[str, int]:
    """The sum as long as the contract and the device allow (a power of two), all else small."""
    small = {
        name: min((c for c in dim.candidates if c > 0), default=dim.usual)
        for name, dim in bench.contract.dims.items()
    }
    base = small if bench.contract.allows(small) else bench.small_dims()
    length = LENGTH
    while length >= SHORTEST:
        dims = {**base, reduction.dim: length}
        if bench.contract.allows(dims) and bench.elements(dims) <= bench.budget:
            return dims
        length //= 2
    return base


def _terms(case: CaseRecord, kind: ReductionKind, length: int) -> torch.Tensor:
    """The probe's terms in the order that the case names, as fp64."""
    order: str = case.params["order"]
    if order == "equal":
        return torch.zeros(length, dtype=torch.float64)
    if kind is ReductionKind.SOFTMAX:
        terms = torch.full((length,), FAR_BELOW, dtype=torch.float64)
        terms[0] = 0.0
    else:
        block = max(2, min(BLOCK, length // 8))
        terms = torch.zeros(length, dtype=torch.float64)
        terms[::block] = 1.0
        squared = kind is ReductionKind.SUM_OF_SQUARES
        terms[0] = ROOT_BIG if squared else BIG
        if not squared:
            terms[(length - 1) // block * block] = -BIG
    if order.startswith("permuted"):
        places = Stream(case.seed, "terms", order).permutation(length)
        terms = terms[torch.from_numpy(places)]
    return terms


def _probe_args(bench: Bench, case: CaseRecord, reduction: Reduction) -> list[Arg]:
    """Ones everywhere, the terms along the summed axis of the first input, colliding indices."""
    args = bench.args(case)
    for item in bench.contract.inputs:
        place = bench.position(item.name)
        arg = args[place]
        if item.name == reduction.inputs[0] and isinstance(arg, torch.Tensor):
            axis = bench.contract.axes(item, reduction.dim)[-1]
            terms = _terms(case, reduction.kind, case.dims[reduction.dim])
            view = [1] * arg.dim()
            view[axis] = -1
            dtype = torch_dtype(bench.contract.dtype(item, case.dtypes))
            args[place] = terms.reshape(view).expand(arg.shape).to(dtype).contiguous()
        elif item.domain.kind is DomainKind.INDEX and isinstance(arg, torch.Tensor):
            args[place] = torch.full_like(arg, int(arg.min()) if arg.numel() else 0)
    return args


def _exactly(bench: Bench, args: list[Arg], outputs: tuple[torch.Tensor, ...]) -> Finding:
    """Every output has the bits of golden rounded once to its dtype."""
    golden = bench.golden(args)
    if isinstance(golden, str):
        return not_applicable(f"the reference refuses this input: {golden}")
    what = "an exact sum came out inexact"
    return worst(
        [
            bitwise(output.name, truth.to(got.dtype), got, what)
            for output, truth, got in zip(bench.contract.outputs, golden, outputs, strict=True)
        ]
    )
