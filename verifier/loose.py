"""The field's standard check, really run: a few random inputs, one shape, allclose.

Its figures are KernelBench's (main, 423217d): atol = rtol = 1e-4 in fp32 and 1e-2 in fp16 and bf16,
five trials, no equal_nan. It is recorded beside the verdict and never decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from verifier.contract import LooseTest
from verifier.records import CaseRecord, LooseResult
from verifier.referee.bench import Bench, Tensors
from verifier.referee.generator import derive_seed
from verifier.subject import Arg, Reply, Subject

LOOSE_TOLERANCE: Final[Mapping[torch.dtype, float]] = {
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
}
LOOSE_TOLERANCE_FP32: Final = 1e-4


def loose_cases(bench: Bench) -> list[CaseRecord]:
    """The trials: the usual shape and dtypes, one seed each."""
    loose = bench.contract.loose
    dims = dict(loose.dims or bench.contract.usual_dims())
    dtypes = bench.contract.usual_dtypes()
    return [
        CaseRecord(f"trial {i}", dims, dtypes, loose.fill, derive_seed(bench.seed, "loose", i))
        for i in range(loose.trials)
    ]


def _tolerances(loose: LooseTest, outputs: Tensors) -> tuple[float, float]:
    default = max(LOOSE_TOLERANCE.get(out.dtype, LOOSE_TOLERANCE_FP32) for out in outputs)
    atol = default if loose.atol is None else loose.atol
    return atol, default if loose.rtol is None else loose.rtol


def _disagreement(expected: Tensors, outputs: Tensors | None, atol: float, rtol: float) -> str:
    """'' where allclose is content, else why it is not."""
    if outputs is None:
        return f"not {len(expected)} outputs"
    for want, got in zip(expected, outputs, strict=True):
        if want.shape != got.shape:
            return f"shape {list(got.shape)} instead of {list(want.shape)}"
        if not torch.allclose(want.to(torch.float64), got.to(torch.float64), atol=atol, rtol=rtol):
            return f"allclose fails at atol {atol:g}, rtol {rtol:g}"
    return ""


def _trial(
    bench: Bench,
    args: Sequence[Arg],
    reply: Reply,
    expected: Tensors,
    tolerance: tuple[float, float],
) -> str:
    if not reply.returned:
        return f"{reply.kind.value}: {reply.detail}"
    return _disagreement(expected, bench.collect(args, reply), *tolerance)


def run_loose(bench: Bench, subject: Subject) -> LooseResult | None:
    """Run the loose test; None where it has nothing to compare with (a random op, say)."""
    if bench.contract.behaviour.random:
        return None
    atol = rtol = 0.0
    detail = ""
    cases = loose_cases(bench)
    for number, case in enumerate(cases, start=1):
        args = bench.args(case)
        eager = bench.eager(args)
        if not eager.returned:
            return None
        atol, rtol = _tolerances(bench.contract.loose, eager.outputs)
        detail = _trial(bench, args, subject.call(args), eager.outputs, (atol, rtol))
        if detail:
            detail = f"trial {number} of {len(cases)}: {detail}"
            break
    first = cases[0]
    return LooseResult(not detail, len(cases), atol, rtol, first.dims, first.dtypes, detail)
