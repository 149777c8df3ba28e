"""G10, extreme range: a finite answer where there is one, the right class at overflow, and -0.0.

Inputs at the limits of exp, huge, nearly equal at a large mean, next to the greatest and to the
smallest number of their dtype, and zeros of both signs. The maps of non-finite values and the signs
of zeros are compared exactly, wherever eager itself keeps within range; numbers by the comparator,
widened by what a rounding of the inputs alone does to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import torch

from verifier.contract import Contract, DomainKind, Input, ReductionKind, Tolerance
from verifier.gate import Finding, failed, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import (
    Rule,
    allowance,
    check_classes,
    check_numbers,
    class_map,
    point_out,
    worst,
)
from verifier.referee.generator import Stream
from verifier.subject import Arg, Subject

Pattern: TypeAlias = Callable[[torch.Tensor, Stream], torch.Tensor]
"""The fp64 values to use in place of an input's ordinary ones (which are nearly normal)."""

EXP_LIMITS: Final = (88.8, 88.0, -88.8, -103.0, -104.5, 11.1, -11.1, -17.4, 0.0, 1.0)
"""Where exp leaves fp32 and fp16, upwards and downwards."""


def _choose(values: Sequence[float], like: torch.Tensor, stream: Stream) -> torch.Tensor:
    picks = stream.integers(0, len(values), like.numel())
    return torch.from_numpy(np.asarray(values)[picks]).reshape(like.shape)


def _spread(like: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Signs times magnitudes in [0.5, 1)."""
    signs = _choose((-1.0, 1.0), like, stream)
    return signs * (0.5 + torch.from_numpy(stream.uniform(like.numel())).reshape(like.shape) / 2)


def _narrow(dtype: torch.dtype) -> bool:
    return dtype.itemsize < 4


def huge(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return _spread(ordinary, stream) * 1e4


def exp_limits(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return _choose(EXP_LIMITS, ordinary, stream)


def equal_rows(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return (4 * ordinary[..., :1].double()).expand(ordinary.shape)


def large_mean(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Above in one row, below in the next, so that zeros in a padded tail show either way."""
    mean = 1e2 if _narrow(ordinary.dtype) else 1e4
    signs = torch.ones(ordinary.shape[:-1], dtype=torch.float64).flatten()
    signs[1::2] = -1.0
    return mean * signs.reshape(*ordinary.shape[:-1], 1) + ordinary.double()


def small_spread(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return 1e2 + 1e-2 * ordinary.double()


def small_rows(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Every other row a thousandth of its neighbours: epsilons show. Vectors stay ordinary."""
    values = ordinary.double()
    if ordinary.dim() > 1 and ordinary[..., 0].numel() > 1:
        values = values.reshape(-1, ordinary.shape[-1])
        values[::2] *= 1e-3
    return values.reshape(ordinary.shape)


def near_max(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return _spread(ordinary, stream) * torch.finfo(ordinary.dtype).max


def smallest(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Normal and subnormal tiny numbers among ordinary ones."""
    tiny = torch.finfo(ordinary.dtype).tiny
    small = _spread(ordinary, stream) * _choose((tiny * 2, tiny, tiny / 8), ordinary, stream)
    return torch.where(_choose((0.0, 1.0), ordinary, stream) > 0, small, ordinary.double())


def zeros(ordinary: torch.Tensor, stream: Stream) -> torch.Tensor:
    return _choose((-0.0, 0.0, -0.0, 1.0, -0.5), ordinary, stream)


PATTERNS: Final[Mapping[str, Pattern]] = {
    pattern.__name__: pattern
    for pattern in (
        huge,
        exp_limits,
        large_mean,
        small_spread,
        small_rows,
        equal_rows,
        near_max,
        smallest,
        zeros,
    )
}
OVERFLOWING: Final = ("huge", "exp_limits", "near_max")
"""Worth trying in every dtype, for each overflows elsewhere."""


def _altered(contract: Contract) -> list[Input]:
    return [
        item
        for item in contract.inputs
        if item.domain.kind is DomainKind.REAL and item.domain.allows_extreme
    ]


def settled_at_the_top(contract: Contract, dtypes: Mapping[str, str]) -> bool:
    """Whether the answer next to the greatest number does not depend on the order of a sum: sums of
    fp16 fit in fp32, and where nothing is summed (or only after a maximum is taken off) no partial
    sum can overflow. Only dims that the contract calls independent are surely not summed: a scan or
    a mixing keeps its dim in the output, and need not be declared as a reduction."""
    altered = _altered(contract)
    if all(contract.dtype(item, dtypes) == "float16" for item in altered):
        return True
    reductions, independent = contract.behaviour.reductions, contract.behaviour.independent
    safe = {each.dim for each in reductions if each.kind is ReductionKind.SOFTMAX}
    dims = {dim for item in altered for dim in item.shape}
    only_safe = all(each.kind is ReductionKind.SOFTMAX for each in reductions)
    return only_safe and dims <= safe.union(independent)


def _extreme_args(bench: Bench, case: CaseRecord) -> list[Arg]:
    pattern = PATTERNS[case.params["pattern"]]
    args = bench.args(case)
    for item in _altered(bench.contract):
        place = bench.position(item.name)
        arg = args[place]
        if isinstance(arg, torch.Tensor) and arg.is_floating_point() and arg.numel():
            values = pattern(arg, Stream(case.seed, "extreme", item.name))
            args[place] = _within(item, values).to(arg.dtype).contiguous()
    return args


def _within(item: Input, values: torch.Tensor) -> torch.Tensor:
    low, high = item.domain.low, item.domain.high
    bounds = [bound if isinstance(bound, int | float) else None for bound in (low, high)]
    return values if bounds == [None, None] else values.clamp(*bounds)


def _replaced(args: Sequence[Arg], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Arg]:
    return [
        change(arg) if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
        for arg in args
    ]


def _flushed(tensor: torch.Tensor) -> torch.Tensor:
    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).tiny, tensor * 0, tensor)


def _beside_zero(tensor: torch.Tensor) -> torch.Tensor:
    """In fp64, zeros moved away from zero by next to nothing, each to its own side."""
    wide = tensor.double()
    return torch.where(wide == 0, torch.copysign(torch.full_like(wide, 2.0**-100), wide), wide)


class Range:
    info = GateInfo(
        GateId.RANGE,
        "Extreme range",
        "finite where the answer is, the right class at overflow, the sign of zero kept",
        tolerance_free=False,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        if bench.contract.behaviour.random:
            return "the op draws random numbers"
        if not _altered(bench.contract):
            return "no input may leave its ordinary range"
        return None

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        for number, (dtypes, patterns) in enumerate(self._assignments(bench)):
            # The usual dtypes meet ragged tiles, the others long sums.
            dims = bench.small_dims() if number else bench.odd_dims()
            for name in patterns:
                if name != near_max.__name__ or settled_at_the_top(bench.contract, dtypes):
                    label = "-".join((name, *dtypes.values()))
                    yield bench.case(GateId.RANGE, label, dims=dims, dtypes=dtypes, pattern=name)

    def _assignments(self, bench: Bench) -> Iterator[tuple[dict[str, str], Iterable[str]]]:
        """The usual dtypes with all patterns, others with those that overflow elsewhere."""
        generous = bench.mode is DeviceMode.CUDA
        for number, dtypes in enumerate(bench.contract.dtype_assignments()):
            if number == 0 or generous:
                yield dtypes, PATTERNS
            elif number == 1:
                yield dtypes, OVERFLOWING

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        args = _extreme_args(bench, case)
        golden, eager = bench.golden(args), bench.eager(args)
        if isinstance(golden, str) or not eager.returned:
            return not_applicable("the reference refuses this input")
        reply = subject.call(args)
        refused = bench.refused_values(case, reply, subject)
        outputs = refused or bench.formed(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        signs = case.params["pattern"] == zeros.__name__
        finding = self.compare(bench, case, args, outputs, signs=signs)
        if finding.failed:
            return replace(finding, detail=f"{case.params['pattern']}: {finding.detail}")
        return finding

    def compare(
        self, bench: Bench, case: CaseRecord, args: Sequence[Arg], outputs: Tensors, *, signs: bool
    ) -> Finding:
        """Outputs for arguments at the limits of their dtype, where neither golden nor eager
        refused them; with ``signs`` the signs of zeros count too."""
        findings = self._findings(bench, case, args, outputs, widened=False)
        if any(finding.failed and not finding.hard for finding in findings):
            findings = self._findings(bench, case, args, outputs, widened=True)
        if signs:
            findings += self.zero_signs(bench, args, outputs)
        return _settle(findings)

    def _findings(
        self,
        bench: Bench,
        case: CaseRecord,
        args: Sequence[Arg],
        outputs: Tensors,
        *,
        widened: bool,
    ) -> list[Finding]:
        """One for each output; ``widened`` by the conditioning, which takes a few more goldens."""
        contract, golden = bench.contract, bench.golden(args)
        flushed, eager = self._flushed_golden(bench, args), bench.eager(args).outputs
        slack = bench.sensitivity(args) if widened else (0.0,) * len(outputs)
        flush, findings = contract.behaviour.flush_subnormals, []
        rows = zip(contract.outputs, golden, flushed, eager, outputs, slack, strict=True)
        for out, truth, other_truth, ref, got, room in rows:
            assert isinstance(truth, torch.Tensor)  # noqa: S101 - judge asked first
            rule = bench.rule(contract.dtype(out, case.dtypes))
            first = _check(out.name, truth, ref, got, rule, room, flush=flush)
            if first.failed and not first.hard and other_truth is not truth:
                second = _check(out.name, other_truth, ref, got, rule, room, flush=flush)
                first = second if second.passed else first
            findings.append(first)
        return findings

    def _flushed_golden(self, bench: Bench, args: Sequence[Arg]) -> tuple[torch.Tensor, ...]:
        """The truth for inputs whose subnormals count as zero, where the contract lets them."""
        plain = bench.golden(args)
        assert not isinstance(plain, str)  # noqa: S101 - judge asked first
        flat = _replaced(args, _flushed)
        same = all(a is b or bool((a == b).all()) for a, b in _tensors(args, flat))
        if same or not bench.contract.behaviour.flush_subnormals:
            return plain
        other = bench.golden(flat)
        return plain if isinstance(other, str) else other

    def zero_signs(self, bench: Bench, args: Sequence[Arg], outputs: Tensors) -> Iterator[Finding]:
        """Signs of zero results of zero inputs. Sums are left out (their sign depends on where the
        summing starts), as are outputs of another shape than the input (-0.0 against 0.0 in a
        maximum)."""
        contract, golden, eager = bench.contract, bench.golden(args), bench.eager(args).outputs
        if contract.behaviour.reductions:
            return
        beside = bench.golden(_replaced(args, _beside_zero))
        shapes = {item.shape for item in _altered(contract)}
        rows = zip(contract.outputs, golden, beside, eager, outputs, strict=True)
        for out, truth, limit, ref, got in rows:
            assert isinstance(truth, torch.Tensor)  # noqa: S101 - nobody refused these arguments
            if out.shape in shapes and isinstance(limit, torch.Tensor) and got.is_floating_point():
                yield _check_signs(out.name, truth, limit, ref, got)


def _tensors(
    left: Sequence[Arg], right: Sequence[Arg]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for a, b in zip(left, right, strict=True):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            yield a, b


def _check(
    name: str,
    golden: torch.Tensor,
    eager: torch.Tensor,
    got: torch.Tensor,
    rule: Rule,
    slack: float,
    *,
    flush: bool,
) -> Finding:
    """Classes first, then numbers; where eager leaves the range by itself, nothing is asked."""
    if not got.is_floating_point():
        return not_applicable("integer and complex outputs have no limits to try here")
    astray = class_map(eager) != class_map(golden.to(got.dtype))
    if astray.all() and astray.numel():
        return not_applicable("eager itself leaves the range")
    got = excused(golden, eager, got, flush=flush)
    classes = check_classes(name, golden, eager, got)
    if not classes.passed:
        return classes
    numbers = check_numbers(name, golden, eager, got, rule)
    if not numbers.failed or numbers.hard or not slack:
        return numbers
    plain = allowance(golden, eager, got.dtype, rule)
    wider = Rule(tolerance=Tolerance(plain.atol + slack, plain.rtol))
    return check_numbers(name, golden, eager, got, wider)


def excused(
    golden: torch.Tensor, eager: torch.Tensor, got: torch.Tensor, *, flush: bool
) -> torch.Tensor:
    """The kernel's output with what it cannot be blamed for filled in: eager's values where eager
    leaves the range, golden's at the very edge of it and for results that may be flushed."""
    rounded = golden.to(got.dtype)
    astray = class_map(eager) != class_map(rounded)
    greatest, tiny = torch.finfo(got.dtype).max, torch.finfo(got.dtype).tiny
    on_the_edge = (golden.abs() > 0.99 * greatest) & (golden.abs() < 1.01 * greatest)
    vanished = (got == 0) & (golden.abs() < tiny) & flush
    return torch.where(astray, eager, torch.where(on_the_edge | vanished, rounded, got))


def _check_signs(
    name: str,
    golden: torch.Tensor,
    limit: torch.Tensor,
    eager: torch.Tensor,
    got: torch.Tensor,
) -> Finding:
    """Zeros have the sign on which golden, eager and the limit from the input's own side agree."""
    sign = golden.signbit()
    settled = (golden == 0) & (eager == 0) & (eager.signbit() == sign) & (limit.signbit() == sign)
    mask = settled & (got == 0) & (got.signbit() != sign)
    if not mask.any():
        return passed()
    finding = failed(f"{name}: {int(mask.sum())} zeros have the wrong sign")
    return point_out(finding, name, mask, golden.to(got.dtype), got)


def _settle(findings: Sequence[Finding]) -> Finding:
    finding = worst(findings)
    if finding.failed:
        return finding
    if finding.passed or any(f.passed for f in findings):
        return passed()
    return not_applicable(f"the reference is no guide here: {finding.detail}")


GATE = Range()
