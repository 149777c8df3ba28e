"""Gate 5, dtype contract: every declared dtype works, comes out as declared, and is not cut down.

The low-bit probe: fp32 inputs whose lowest mantissa bits carry the answer. TF32 (10 mantissa bits)
and bf16 (7) cannot hold them, so a kernel that silently computes in less lands near what the *cut*
inputs would give, and far from the truth by fp32's measure. Likewise fp64 against fp32, and 64-bit
integers against anything narrower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

import torch

from verifier.contract import DomainKind, Input, ReductionKind
from verifier.gate import Finding, failed, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.generator import Stream
from verifier.referee.paths import other_paths
from verifier.referee.probes import float_inputs, judged_dtypes, tiny_dims
from verifier.subject import Arg, Reply, ReplyKind, Subject

TF32_BITS: Final = 13
"""Mantissa bits of fp32 that TF32 drops."""

SMALL: Final = 1024

UNIT: Final = {torch.float32: 2.0**-22, torch.float64: 2.0**-44}
"""Rounding that an honest kernel may add to eager's, relative to the greatest value."""

TELLING: Final = 16.0
"""Cut inputs must do this many times the harm of honest rounding, or the probe says nothing."""

NO_TENSOR_CORES: Final = (
    "the interpreter multiplies in full fp32; whether tl.dot uses TF32 shows on a GPU only"
)


class Probe(StrEnum):
    """What a case asks."""

    WORKS = "works"
    LOW_BITS = "low bits"
    WIDE_INTEGERS = "wide integers"
    TENSOR_CORES = "tensor cores"


TELLING_PROBES: Final = (Probe.LOW_BITS, Probe.WIDE_INTEGERS)


class Dtypes:
    """G5."""

    info = GateInfo(
        GateId.DTYPES,
        "Dtype contract",
        "every declared dtype works, is returned as declared, and is not silently cut down",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Not to random draws, whose values mean nothing one by one."""
        return "draws random numbers" if bench.contract.behaviour.random else None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """One case per dtype assignment, then the probes that its dtypes call for."""
        dims = tiny_dims(bench, SMALL)
        for dtypes in bench.contract.dtype_assignments():
            for label, fill, probe in _trials(bench, dtypes):
                kind = "/".join(dtypes.values()) or "fixed dtypes"
                yield bench.case(
                    self.info.id,
                    f"{label} {kind}".strip(),
                    dims=dims,
                    dtypes=dtypes,
                    fill=fill,
                    probe=probe.value,
                )
        yield from self._elsewhere(bench)

    def _elsewhere(self, bench: Bench) -> Iterator[CaseRecord]:
        """On the kernel's other paths, one probe for each assignment that has one; on the first of
        them every dtype but the usual, of which gate 4 sees many sizes, has to work."""
        usual = bench.contract.usual_dtypes()
        for place, path in enumerate(other_paths(bench, self.info.id)):
            for dtypes in judged_dtypes(bench):
                trials = [t for t in _trials(bench, dtypes) if t[2] in TELLING_PROBES]
                chosen = trials[place % len(trials) :][:1] if trials else []
                if place == 0 and dtypes != usual and not chosen:
                    chosen = [("", "normal", Probe.WORKS)]
                for label, fill, probe in chosen:
                    kind = "/".join(dtypes.values()) or "fixed dtypes"
                    yield bench.case(
                        self.info.id,
                        f"{label} {kind}, {path.name}".strip(),
                        dims=path.dims,
                        dtypes=dtypes,
                        fill=fill,
                        probe=probe.value,
                        path=path.name,
                    )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Right dtype and values; for the probe, nearer to the truth than cut inputs would be."""
        probe = Probe(case.params["probe"])
        if probe is Probe.TENSOR_CORES:
            return not_applicable(NO_TENSOR_CORES)
        args = bench.args(case)
        if probe is Probe.WIDE_INTEGERS:
            _widen(bench, case, args)
        reply = subject.call(args)
        outputs = _refusal(bench, case, reply, subject) or bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        if probe is Probe.LOW_BITS:
            return _not_cut(bench, case, args, outputs)
        return bench.compare(case, args, outputs)


GATE: Final = Dtypes()


def _trials(bench: Bench, dtypes: Mapping[str, str]) -> Iterator[tuple[str, str, Probe]]:
    """(label, fill, probe) of each case for one assignment."""
    yield "", "normal", Probe.WORKS
    contract, behaviour = bench.contract, bench.contract.behaviour
    taken = {contract.dtype(item, dtypes) for item in float_inputs(bench, dtypes)}
    given = {contract.dtype(out, dtypes) for out in contract.outputs}
    single = "float32" in taken & given and not behaviour.allow_tf32
    if single or "float64" in taken & given:
        for fill in ("low_bits", "normal"):
            yield f"low bits, {fill.replace('_', ' ')} values,", fill, Probe.LOW_BITS
    if _wide_inputs(bench, dtypes):
        yield "beyond 32 bits,", "normal", Probe.WIDE_INTEGERS
    multiplies = any(r.kind is ReductionKind.DOT for r in behaviour.reductions)
    if single and multiplies and bench.mode is DeviceMode.CPU_INTERPRET:
        yield "TF32 in tl.dot,", "normal", Probe.TENSOR_CORES


def _refusal(bench: Bench, case: CaseRecord, reply: Reply, subject: Subject) -> Finding | None:
    """Sizes may be refused, a dtype at its own sizes may not, nor a probe's values alone."""
    if Probe(case.params["probe"]) is not Probe.WORKS:
        return bench.refused_values(case, reply, subject)
    refused = bench.refused(reply, case)
    if refused is None:
        return None
    home = replace(case, dims=bench.home_dims())
    if home.dims != case.dims:
        reply = subject.call(bench.args(home))
    if reply.kind is ReplyKind.RAISED:
        return failed(f"refuses a declared dtype: {reply.detail.splitlines()[0][:120]}")
    return refused


def _wide_inputs(bench: Bench, dtypes: Mapping[str, str]) -> list[Input]:
    """Inputs of 64-bit integers that may take any value."""
    return [
        item
        for item in bench.contract.inputs
        if bench.contract.dtype(item, dtypes) == "int64"
        and item.domain.kind is DomainKind.REAL
        and not item.domain.bounded
    ]


def _widen(bench: Bench, case: CaseRecord, args: list[Arg]) -> None:
    """Add multiples of 2**40 to 64-bit integers: neither int32 nor fp32 holds the sums."""
    for item in _wide_inputs(bench, case.dtypes):
        value = bench.named(args)[item.name]
        assert isinstance(value, torch.Tensor)  # noqa: S101 - inputs are tensors
        high = Stream(case.seed, "widen", item.name).integers(-8, 9, value.numel())
        value += torch.from_numpy(high).reshape(value.shape) << 40


def cut_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """fp32 values rounded to nearest even at TF32's 10 mantissa bits."""
    bits = tensor.contiguous().view(torch.int32)
    half = (1 << (TF32_BITS - 1)) - 1 + ((bits >> TF32_BITS) & 1)
    return ((bits + half) >> TF32_BITS << TF32_BITS).view(torch.float32)


def _cut_args(args: Sequence[Arg]) -> list[Arg]:
    """fp32 as TF32 holds it, fp64 as fp32 holds it, all else as it is."""
    cut: list[Arg] = []
    for arg in args:
        if isinstance(arg, torch.Tensor) and arg.dtype is torch.float32:
            cut.append(cut_to_tf32(arg))
        elif isinstance(arg, torch.Tensor) and arg.dtype is torch.float64:
            cut.append(arg.float().double())
        else:
            cut.append(arg)
    return cut


def _not_cut(bench: Bench, case: CaseRecord, args: Sequence[Arg], outputs: Tensors) -> Finding:
    """The kernel's error is nearer to an honest one than to that of cut inputs (geometric middle).
    Honest is eager's, and what adding one term after the other may lose where eager adds in pairs.
    """
    golden, eager, cut = bench.golden(args), bench.eager(args), bench.golden(_cut_args(args))
    if isinstance(golden, str) or isinstance(cut, str) or not eager.returned:
        return not_applicable("the reference refuses the probe")
    telling = False
    for output, truth, reference, other, got in zip(
        bench.contract.outputs, golden, eager.outputs, cut, outputs, strict=True
    ):
        if got.dtype not in UNIT or not got.numel() or not bool(truth.isfinite().all()):
            continue
        unit = UNIT[got.dtype] * float(truth.abs().max())
        honest = _error(reference, truth) + unit * (1 + bench.in_turn(case, output))
        damage = _error(other, truth)
        if damage <= TELLING * honest:
            continue
        telling = True
        error = _error(got, truth)
        if not error < 2 * (honest * damage) ** 0.5:
            detail = f"{output.name} is off by {error:.3g}, as if the inputs had been cut down:"
            detail += f" an honest kernel is off by {honest:.3g}, cut inputs by {damage:.3g}"
            return replace(failed(detail), output=output.name)
    return passed() if telling else not_applicable("the low bits do not reach the outputs")


def _error(values: torch.Tensor, truth: torch.Tensor) -> float:
    return float((values.double() - truth).abs().max())
