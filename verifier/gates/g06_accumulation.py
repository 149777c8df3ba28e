"""Gate 6, accumulation precision: sums are carried in at least fp32.

The cancellation-integer probe: +C, ones here and there, -C. Every partial sum is an integer below
2**24, so any order of fp32 additions is exact; fp16 and bf16 lose the ones beside C. Each row has
the terms in another order: opening blocks (a narrow carry between wide blocks), permuted (trees),
and dense. Where terms enter squared or exponentiated they cannot cancel: there one large term
stands against many that are below half a unit of a narrow sum's last place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.contract import DomainKind, Reduction, ReductionKind
from verifier.gate import Finding, not_applicable
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import Rule, bitwise, check_output, worst
from verifier.referee.generator import Stream
from verifier.referee.inputs import torch_dtype
from verifier.referee.paths import PATH, WHOLE_AND_SHORT, other_paths
from verifier.referee.probes import float_inputs, judged_dtypes
from verifier.subject import Arg, Subject

BIG: Final = 4096.0
LENGTHS: Final[Mapping[DeviceMode, tuple[int, ...]]] = {
    DeviceMode.CPU_INTERPRET: (2048, 256),
    DeviceMode.CUDA: (1 << 16, 4096, 256),
}
"""Numbers of terms. Powers of two, so that a mean divides exactly."""
SOFT_LENGTHS: Final[Mapping[DeviceMode, tuple[int, ...]]] = {
    DeviceMode.CPU_INTERPRET: (4096,),
    DeviceMode.CUDA: (1 << 16, 4096),
}
"""The same where terms cannot cancel: a sum of ones in fp16 stops at 2048."""
ENOUGH: Final = 4096
"""Terms that show any sum in half precision for what it is."""
ROWS: Final = 4
"""Sums side by side in one call, each with its terms in another order."""
BLOCK: Final = 64
SHORTEST: Final = 16
"""A shorter sum has no room for the probe."""

ORDERS: Final = (
    "blocks",
    "permuted 1",
    "dense",
    "permuted 2",
    "wide blocks",
    "dense permuted",
    "permuted 3",
    "permuted 4",
)
SOFT_ORDERS: Final = ("dense", "blocks", "dense permuted", "blocks permuted")
"""For terms that cannot cancel. "equal" goes alone, for its answers are of another magnitude."""
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

SMALL_ROOT: Final = 2.0**-6
"""Squared it is 2**-12, a quarter of fp16's last place beside 1."""
FAR_BELOW: Final = -9.0
"""Logits this far below the greatest: each adds 1.2e-4 to a sum of about one."""
ABSENT: Final = -200.0
"""A logit that adds nothing, in any dtype."""


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
        """Each declared sum, in each dtype judged here, in all orders; every length in the dtype
        that loses most, for the others one."""
        for number, reduction in enumerate(bench.contract.behaviour.reductions):
            sizes = _long_dims(bench, reduction)
            judged = [d for d in judged_dtypes(bench) if float_inputs(bench, d)]
            narrowest = max(judged, key=lambda d: _step(bench, reduction, d), default=None)
            for dtypes in judged:
                lengths = list(sizes) if dtypes == narrowest else [_one_of(list(sizes))]
                for length in lengths:
                    yield from self._orders(bench, number, sizes[length], dtypes, length)
            if narrowest is not None:
                yield from self._elsewhere(bench, number, narrowest)

    def _elsewhere(
        self, bench: Bench, number: int, dtypes: Mapping[str, str]
    ) -> Iterator[CaseRecord]:
        """On the kernel's other paths, as many orders as one call holds. Whole and short sums lose
        little, and 256 is one of the usual lengths."""
        reduction = bench.contract.behaviour.reductions[number]
        for path in other_paths(bench, self.info.id, reduction.dim, SHORTEST + 1):
            if path.name == WHOLE_AND_SHORT.name:
                continue
            length = path.dims[reduction.dim]
            first = next(self._orders(bench, number, path.dims, dtypes, length))
            params = {**first.params, PATH: path.name}
            yield replace(first, label=f"{first.label}, {path.name}", params=params)

    def _orders(
        self,
        bench: Bench,
        number: int,
        dims: Mapping[str, int],
        dtypes: Mapping[str, str],
        length: int,
    ) -> Iterator[CaseRecord]:
        """All orders: as many a call as there are sums side by side."""
        reduction = bench.contract.behaviour.reductions[number]
        kinds = "/".join(dtypes.values()) or "fixed dtypes"
        for place, orders in enumerate(_grouped(reduction, _sums(bench, dims, reduction))):
            name = f"{reduction.kind.value} of {length} over {reduction.dim}, {kinds}: {orders[0]}"
            for carrier in _carriers(reduction)[: 1 if place else None]:
                alone = {**_base(bench, reduction, 1), reduction.dim: length}
                small = orders == ("equal",) and bench.contract.allows(alone)
                yield bench.case(
                    self.info.id,
                    name + (f", terms in {carrier}" if carrier != reduction.inputs[0] else ""),
                    dims=alone if small else dims,
                    dtypes=dtypes,
                    fill="ones",
                    reduction=number,
                    orders=list(orders),
                    terms_in=carrier,
                )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Bit-equality with the exact answer where the terms come through, else the comparator."""
        reduction = bench.contract.behaviour.reductions[case.params["reduction"]]
        length = case.dims[reduction.dim]
        if length < SHORTEST:
            return not_applicable(f"{length} terms are too few to lose any")
        if not _holds(bench, case):
            return not_applicable("the input's dtype cannot hold the probe")
        args = _probe_args(bench, case, reduction)
        reply = subject.call(args)
        refused = bench.refused_values(case, reply, subject)
        outputs = refused or bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        if reduction.kind not in EXACT:
            return _closely(bench, case, args, outputs)
        if reduction.kind is ReductionKind.MEAN and length & (length - 1):
            return _closely(bench, case, args, outputs)
        return _exactly(bench, args, outputs)


GATE: Final = Accumulation()


def _step(bench: Bench, reduction: Reduction, dtypes: Mapping[str, str]) -> float:
    """What the dtype of the terms has between one and the next value."""
    spec = bench.contract.input(reduction.inputs[0])
    dtype = torch_dtype(bench.contract.dtype(spec, dtypes))
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def _one_of(lengths: Sequence[int]) -> int:
    """The length for a dtype that gets one: a kernel is compiled for each, and for the greatest
    that takes seconds."""
    return max((n for n in lengths if n <= ENOUGH), default=min(lengths))


def _grouped(reduction: Reduction, sums: int) -> list[tuple[str, ...]]:
    """The orders to try, as many a call as there are sums side by side."""
    exact = reduction.kind in EXACT
    every = ORDERS if exact else SOFT_ORDERS
    groups = [every[start : start + sums] for start in range(0, len(every), sums)]
    return groups if exact else [*groups, ("equal",)]


def _carriers(reduction: Reduction) -> tuple[str, ...]:
    """Which input holds the terms: either factor of a product."""
    return reduction.inputs[:2] if reduction.kind is ReductionKind.DOT else reduction.inputs[:1]


def _holds(bench: Bench, case: CaseRecord) -> bool:
    spec = bench.contract.input(case.params["terms_in"])
    dtype = torch_dtype(bench.contract.dtype(spec, case.dtypes))
    return dtype.is_floating_point and torch.finfo(dtype).max > 2 * BIG


def _long_dims(bench: Bench, reduction: Reduction) -> dict[int, dict[str, int]]:
    """Long and short sums (powers of two within the contract), a few side by side, all else small.

    Where the contract allows none of the lengths, the greatest power of two that it does allow, and
    failing that the usual sizes.
    """
    found: dict[int, dict[str, int]] = {}
    lengths = LENGTHS if reduction.kind in EXACT else SOFT_LENGTHS
    for length in lengths[bench.mode]:
        dims = _greatest(bench, reduction, length)
        if dims is not None:
            found.setdefault(dims[reduction.dim], dims)
    if not found:
        usual = bench.small_dims()
        found[usual[reduction.dim]] = usual
    return found


def _greatest(bench: Bench, reduction: Reduction, length: int) -> dict[str, int] | None:
    bases = [_base(bench, reduction, rows) for rows in (ROWS, 1)] + [bench.small_dims()]
    while length >= SHORTEST and not bench.contract.behaviour.fixed_shape:
        for base in bases:
            dims = {**base, reduction.dim: length}
            if bench.contract.allows(dims) and bench.elements(dims) <= bench.budget:
                return dims
        length //= 2
    return None


def _base(bench: Bench, reduction: Reduction, rows: int) -> dict[str, int]:
    """The smallest sizes, but ``rows`` sums side by side where a dim of the op allows it."""
    dims = {
        name: min((c for c in dim.candidates if c > 0), default=dim.usual)
        for name, dim in bench.contract.dims.items()
    }
    for name, dim in bench.contract.dims.items():
        trial = {**dims, name: rows}
        if name == reduction.dim or not dim.allows(rows) or dims[name] >= rows:
            continue
        if bench.contract.satisfied(trial) and _sums(bench, trial, reduction) >= rows:
            return trial
    return dims


def _sums(bench: Bench, dims: Mapping[str, int], reduction: Reduction) -> int:
    """How many sums lie side by side in the input that holds the terms."""
    spec = bench.contract.input(reduction.inputs[0])
    size = 1
    for extent in bench.contract.shape(spec, dims):
        size *= extent
    return max(1, min(size // max(dims[reduction.dim], 1), len(ORDERS)))


def _terms(case: CaseRecord, kind: ReductionKind, order: str, length: int) -> torch.Tensor:
    """One sum's terms in the named order, as fp64."""
    block = max(2, min(4 * BLOCK if order == "wide blocks" else BLOCK, length // 8))
    if kind is ReductionKind.SOFTMAX:
        large, small, absent = 0.0, FAR_BELOW, ABSENT
    elif kind is ReductionKind.SUM_OF_SQUARES:
        large, small, absent = 1.0, SMALL_ROOT, 0.0
    else:
        large, small, absent = BIG, 1.0, 0.0
    if order == "equal":
        return torch.full((length,), large, dtype=torch.float64)
    dense = order.startswith("dense")
    terms = torch.full((length,), small if dense else absent, dtype=torch.float64)
    terms[::block] = small
    terms[1] = small
    if kind not in EXACT:
        terms[1::block] = small
    terms[0] = large
    if kind in EXACT:
        terms[(length - 1) // block * block] = -large
    if "permuted" in order:
        places = Stream(case.seed, "terms", order).permutation(length)
        terms = terms[torch.from_numpy(places)]
    return terms


def _probe_args(bench: Bench, case: CaseRecord, reduction: Reduction) -> list[Arg]:
    """Ones everywhere, the terms along the summed axis of their input, colliding indices."""
    args = bench.args(case)
    for item in bench.contract.inputs:
        place = bench.position(item.name)
        arg = args[place]
        assert isinstance(arg, torch.Tensor)  # noqa: S101 - inputs are tensors
        if item.name == case.params["terms_in"]:
            axis = bench.contract.axes(item, reduction.dim)[-1]
            args[place] = _filled(case, reduction.kind, arg, axis)
        elif item.domain.kind is DomainKind.INDEX:
            args[place] = torch.full_like(arg, int(arg.min()) if arg.numel() else 0)
    return args


def _filled(case: CaseRecord, kind: ReductionKind, blank: torch.Tensor, axis: int) -> torch.Tensor:
    """A tensor like ``blank`` whose sums along ``axis`` take the case's orders in turn."""
    length = blank.shape[axis]
    orders = [_terms(case, kind, order, length) for order in case.params["orders"]]
    sums = blank.numel() // max(length, 1)
    rows = torch.stack([orders[row % len(orders)] for row in range(sums)])
    moved = blank.movedim(axis, -1)
    return rows.reshape(moved.shape).movedim(-1, axis).to(blank.dtype).contiguous()


def _exactly(bench: Bench, args: list[Arg], outputs: Tensors) -> Finding:
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


def _closely(bench: Bench, case: CaseRecord, args: list[Arg], outputs: Tensors) -> Finding:
    """The default comparator, whatever tolerance the contract has: the probe is made for it.

    K equal terms can round the same way K times, so an honest fp32 sum may be off by K * 2**-24;
    half precision is off by thousands of times that.
    """
    golden, eager = bench.golden(args), bench.eager(args)
    if isinstance(golden, str) or not eager.returned:
        return not_applicable(f"the reference refuses this input: {golden} {eager.detail}")
    length = case.dims[bench.contract.behaviour.reductions[case.params["reduction"]].dim]
    findings = []
    trials = zip(bench.contract.outputs, golden, eager.outputs, outputs, strict=True)
    for out, truth, ref, got in trials:
        scale = float(truth[truth.isfinite()].abs().max()) if truth.isfinite().any() else 0.0
        rule = Rule(bench.rule_factor, spare=length * 2.0**-24 * scale)
        findings.append(check_output(out.name, truth, ref, got, rule))
    return worst(findings)
