"""Gate 5, dtype contract: every declared dtype works, comes out as declared, and is not cut down.

The low-bit probe: fp32 inputs whose lowest mantissa bits carry the answer. TF32 (10 mantissa bits)
and bf16 (7) cannot hold them, so a kernel that silently computes in less lands near what the *cut*
inputs would give, and far from the truth by fp32's measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.gate import Finding, failed, not_applicable, passed
from verifier.records import CaseRecord, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.probes import tiny_dims
from verifier.subject import Arg, ReplyKind, Subject

TF32_BITS: Final = 13
"""Mantissa bits of fp32 that TF32 drops."""

SMALL: Final = 1024


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
        """Always: outputs have a dtype, whatever the task."""
        return None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """One case per dtype assignment, then the low-bit probe where an input is fp32."""
        dims = tiny_dims(bench, SMALL)
        for dtypes in bench.contract.dtype_assignments():
            kind = "/".join(dtypes.values()) or "fixed dtypes"
            yield bench.case(self.info.id, kind, dims=dims, dtypes=dtypes, probe=False)
            if _probed(bench, dtypes):
                for fill in ("low_bits", "normal"):
                    label = f"low bits of {kind}, {fill}"
                    yield bench.case(
                        self.info.id, label, dims=dims, dtypes=dtypes, fill=fill, probe=True
                    )

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Right dtype and values; for the probe, nearer to the truth than cut inputs would be."""
        args = bench.args(case)
        reply = subject.call(args)
        if reply.kind is ReplyKind.RAISED:
            return failed(f"refuses a declared dtype: {reply.detail.splitlines()[0][:120]}")
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        if not case.params["probe"]:
            return bench.compare(case, args, outputs)
        return _not_cut(bench, args, outputs)


GATE: Final = Dtypes()


def _probed(bench: Bench, dtypes: dict[str, str]) -> bool:
    contract = bench.contract
    if contract.behaviour.allow_tf32:
        return False
    named = [contract.dtype(item, dtypes) for item in contract.tensors]
    return "float32" in named[: len(contract.inputs)] and "float32" in named


def cut_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """fp32 values rounded to nearest even at TF32's 10 mantissa bits."""
    bits = tensor.contiguous().view(torch.int32)
    half = (1 << (TF32_BITS - 1)) - 1 + ((bits >> TF32_BITS) & 1)
    return ((bits + half) >> TF32_BITS << TF32_BITS).view(torch.float32)


def _cut_args(args: Sequence[Arg]) -> list[Arg]:
    return [
        cut_to_tf32(arg) if isinstance(arg, torch.Tensor) and arg.dtype is torch.float32 else arg
        for arg in args
    ]


def _not_cut(bench: Bench, args: Sequence[Arg], outputs: Tensors) -> Finding:
    """The kernel's error is nearer to eager's than to that of cut inputs (geometric middle)."""
    golden, eager, cut = bench.golden(args), bench.eager(args), bench.golden(_cut_args(args))
    if isinstance(golden, str) or isinstance(cut, str) or not eager.returned:
        return not_applicable("the reference refuses the probe")
    telling = False
    for output, truth, reference, other, got in zip(
        bench.contract.outputs, golden, eager.outputs, cut, outputs, strict=True
    ):
        if got.dtype is not torch.float32 or not got.numel() or not bool(truth.isfinite().all()):
            continue
        scale = float(truth.abs().max())
        floor = float((reference.double() - truth).abs().max()) + 2.0**-22 * scale
        damage = float((other - truth).abs().max())
        if damage <= 16 * floor:
            continue
        telling = True
        error = float((got.double() - truth).abs().max())
        if not error < (floor * damage) ** 0.5 * 2:
            detail = f"{output.name} is off by {error:.3g}, as if fp32 had been cut down: fp32"
            detail += f" gives {floor:.3g}, TF32 {damage:.3g}"
            return replace(failed(detail), output=output.name)
    return passed() if telling else not_applicable("the low bits do not reach the outputs")
