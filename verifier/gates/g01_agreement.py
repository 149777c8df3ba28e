"""Gate 1, baseline agreement: the kernel agrees with fp64 at the task's shape.

Several undisclosed seeds on several distributions, each within twice eager's own error. A kernel
that cannot be loaded or called, or returns the wrong kind of thing, fails here first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import torch

from verifier.contract import INTEGER_DTYPES
from verifier.gate import Finding, failed, inconclusive, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.probes import judged_dtypes
from verifier.subject import Arg, ReplyKind, Subject

FILLS: Final[dict[DeviceMode, tuple[str, ...]]] = {
    DeviceMode.CPU_INTERPRET: ("normal", "uniform", "heavy", "logits", "normal"),
    DeviceMode.CUDA: ("normal", "uniform", "heavy", "logits", "wide") + ("normal",) * 4,
}
OTHER_DTYPES: Final = ("normal", "uniform", "heavy")

TIES: Final = ("small_int",)
"""For ops that answer in integers, such as argmax: equal values, so that a tie must be broken."""

TRIVIAL: Final = 10.0
"""A kernel must beat doing nothing by this factor, wherever the default rule asks for as much."""

DRAWS: Final = 4
LEAST_SAMPLES: Final = 200
KS_BOUND: Final = 2.9
"""Two-sample Kolmogorov-Smirnov at a false alarm rate of 1e-7: sqrt(-ln(alpha / 2) / 2)."""


class Agreement:
    """G1."""

    info = GateInfo(
        GateId.AGREEMENT,
        "Baseline agreement",
        "agrees with the fp64 golden at the task's shape, on several seeds and distributions",
        tolerance_free=False,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Always: every task has a reference."""
        return None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """Five or more seeds in the usual dtypes, three in each other assignment."""
        dims = bench.home_dims()
        for number, dtypes in enumerate(judged_dtypes(bench)):
            fills = OTHER_DTYPES if number else FILLS[bench.mode]
            fills += TIES if _answers_in_integers(bench, dtypes) else ()
            kinds = "/".join(dtypes.values()) or "fixed dtypes"
            for seed, fill in enumerate(fills, start=1):
                label = f"{fill} values, {kinds}, seed {seed}"
                yield bench.case(self.info.id, label, dims=dims, dtypes=dtypes, fill=fill)

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """One call against golden and eager; many calls for an op that draws random numbers."""
        args = bench.args(case)
        if bench.contract.behaviour.random:
            return _judge_distribution(bench, case, args, subject)
        reply = subject.call(args)
        if reply.kind is ReplyKind.RAISED and case.dtypes != bench.contract.usual_dtypes():
            return not_applicable(f"refuses these dtypes (gate 5 judges that): {reply.detail[:90]}")
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        finding = bench.compare(case, args, outputs)
        return _guard_trivial(bench, args, outputs, finding) if finding.passed else finding


GATE: Final = Agreement()


def _answers_in_integers(bench: Bench, dtypes: Mapping[str, str]) -> bool:
    named = [bench.contract.dtype(output, dtypes) for output in bench.contract.outputs]
    return any(name in INTEGER_DTYPES for name in named)


def _guard_trivial(
    bench: Bench, args: Sequence[Arg], outputs: Tensors, finding: Finding
) -> Finding:
    """Fail what is no better than zeros, the mean, or an input passed through.

    It only bites where a contract's own tolerance is loose: a kernel within the default rule is
    never accused, nor is one whose op really is trivial on these values.
    """
    golden, eager = bench.golden(args), bench.eager(args).outputs
    assert not isinstance(golden, str)  # noqa: S101 - compare has passed
    for spec, gold, ref, got in zip(bench.contract.outputs, golden, eager, outputs, strict=True):
        finite = gold.isfinite() & got.isfinite() & ref.isfinite()
        if not got.is_floating_point() or not finite.any():
            continue
        truth = gold[finite]
        error, honest = _error(got[finite], truth), 2 * _error(ref[finite], truth)
        for name, stand_in in _stand_ins(gold, finite, args):
            bar = _error(stand_in, truth) / TRIVIAL
            if honest + 1e-6 * float(truth.abs().max()) <= bar < error:
                return failed(f"{spec.name} is hardly better than {name}", hard=False)
    return finding


def _error(values: torch.Tensor, truth: torch.Tensor) -> float:
    return float((values.double() - truth).abs().max())


def _stand_ins(
    golden: torch.Tensor, finite: torch.Tensor, args: Sequence[Arg]
) -> Iterator[tuple[str, torch.Tensor]]:
    truth = golden[finite]
    yield "all zeros", torch.zeros_like(truth)
    yield "its own mean", truth.mean().expand_as(truth)
    for arg in args:
        if isinstance(arg, torch.Tensor) and arg.shape == golden.shape and not arg.is_complex():
            yield "an input passed through", arg[finite].double().nan_to_num()


def _judge_distribution(
    bench: Bench, case: CaseRecord, args: Sequence[Arg], subject: Subject
) -> Finding:
    """Are the kernel's draws and eager's drawn from one distribution (Kolmogorov-Smirnov)?"""
    drawn: list[Tensors] = []
    expected: list[Tensors] = []
    eager = bench.new_eager()
    for draw in range(DRAWS):
        outputs = bench.results(case, args, subject.call(args))
        if isinstance(outputs, Finding):
            return outputs
        with torch.random.fork_rng():
            torch.manual_seed(case.seed % 2**31 + draw)
            expected.append(eager.call(args).outputs)
        drawn.append(outputs)
    for number, spec in enumerate(bench.contract.outputs):
        left = torch.cat([outputs[number].double().flatten() for outputs in drawn])
        right = torch.cat([outputs[number].double().flatten() for outputs in expected])
        if left.numel() < LEAST_SAMPLES:
            return inconclusive(f"{left.numel()} draws are too few to tell distributions apart")
        distance = _ks(left, right)
        if distance > KS_BOUND:
            return failed(
                f"{spec.name} has another distribution than eager's (KS {distance:.1f})", hard=False
            )
    return passed("the draws have eager's distribution")


def _ks(left: torch.Tensor, right: torch.Tensor) -> float:
    """The scaled two-sample statistic sup|F - G| * sqrt(nm / (n + m))."""
    points = torch.cat([left, right]).sort().values
    below = [
        torch.searchsorted(side.sort().values, points, right=True).double() / side.numel()
        for side in (left, right)
    ]
    count = left.numel() * right.numel() / (left.numel() + right.numel())
    return float((below[0] - below[1]).abs().max()) * float(count**0.5)
