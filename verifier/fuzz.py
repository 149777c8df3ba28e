"""Seeded fuzzing that knows the op's schema: one kernel, many drawn situations, fp64 as the judge.

A case is a pure function of (contract, seed, strategy, number): shapes from the contract's
candidates and around the kernel's tile sizes, dtypes, value patterns, planted non-finite values and
layouts.
A failing case is shrunk to its smallest shape and seen again in a fresh process; its record holds
the sha256 of every call's inputs and outputs, so that it replays byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

import torch

from verifier.contract import Input, NanPolicy, Task, Tolerance
from verifier.gate import Finding
from verifier.minimise import smallest
from verifier.pipeline import Recorder
from verifier.records import (
    CallDigest,
    CaseNote,
    CaseRecord,
    Counterexample,
    Environment,
    GateStatus,
    KernelRef,
    TaskRef,
)
from verifier.referee.bench import Bench
from verifier.referee.generator import GENERATOR_VERSION, Stream, derive_seed
from verifier.referee.probes import judged_dtypes
from verifier.subject import Arg, Subject

FUZZ_VERSION: Final = 1
"""Changes when the same seed would draw other cases."""

DRAWS: Final = 32
"""How often shapes are drawn again while they are too large for this device."""

KEPT_FAILURES: Final = 3
"""So many failures are shrunk and kept; the rest are counted."""

MINIMISE_TRIALS: Final = 60

Item = TypeVar("Item")


class Strategy(StrEnum):
    """Where cases come from."""

    REGULAR = "regular"
    """Sizes that are powers of two, values uniform in [-10, 10]: what a benchmark would try."""
    BOUNDARY = "boundary"
    """The contract's candidates, values uniform in [-10, 10]: the paper's protocol."""
    ADVERSARIAL = "adversarial"
    """The candidates, with NaN and infinities planted among values of every pattern."""
    MIXED = "mixed"
    """All of it, and sizes around the kernel's tiles, and layouts."""


class Layout(StrEnum):
    """How the inputs lie in memory; whatever lies between their values is NaN."""

    DENSE = "dense"
    TRANSPOSED = "transposed"
    STEP2 = "step2"
    OFFSET = "offset"


PLANTS: Final[Mapping[str, float]] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
}
PLAIN_FILLS: Final = ("wide",)
EVERY_FILL: Final = ("wide", "normal", "uniform", "heavy", "logits", "small_int", "zeros")
ODD_SIZES: Final = (1, 2, 3, 5, 7, 17, 31, 33, 127, 129)


@dataclass(frozen=True, slots=True)
class FuzzReport:
    """What fuzzing one kernel found. ``failures`` are shrunk and replay; ``failed`` counts all."""

    task: TaskRef
    kernel: KernelRef
    environment: Environment
    seed: int
    strategy: Strategy
    iterations: int
    passed: int
    failed: int
    notes: tuple[CaseNote, ...] = ()
    failures: tuple[Counterexample, ...] = ()
    tolerances: Mapping[str, float] = field(default_factory=dict)
    fuzz_version: int = FUZZ_VERSION
    generator_version: int = GENERATOR_VERSION


# --- drawing a case


def fuzz_case(bench: Bench, strategy: Strategy, seed: int, number: int) -> CaseRecord:
    """The case of this number: always the same one for the same contract, seed and tile sizes."""
    stream = Stream(seed, "fuzz", FUZZ_VERSION, strategy, number)
    mixed = strategy is Strategy.MIXED
    adversarial = strategy is Strategy.ADVERSARIAL
    fills = EVERY_FILL if mixed or adversarial else PLAIN_FILLS
    plant = _pick(stream, tuple(PLANTS))
    layout = _pick(stream, tuple(Layout))
    return CaseRecord(
        label=f"{strategy} {number}",
        dims=_draw_dims(bench, strategy, stream),
        dtypes=_pick(stream, judged_dtypes(bench)),
        fill=_pick(stream, fills),
        seed=derive_seed(seed, "fuzz", strategy, number),
        params={
            "strategy": strategy.value,
            "plant": plant if adversarial or (mixed and _one_in(stream, 4)) else "",
            "layout": layout if mixed and _one_in(stream, 3) else Layout.DENSE.value,
        },
    )


def _pick(stream: Stream, items: Sequence[Item]) -> Item:
    return items[int(stream.integers(0, len(items), 1)[0])]


def _one_in(stream: Stream, count: int) -> bool:
    return int(stream.integers(0, count, 1)[0]) == 0


def _draw_dims(bench: Bench, strategy: Strategy, stream: Stream) -> dict[str, int]:
    """Allowed sizes within the device's budget; the small usual sizes if none turn up."""
    choices = {name: _sizes(bench, strategy, name) for name in bench.contract.dims}
    for _ in range(DRAWS):
        dims = {name: _pick(stream, sizes) for name, sizes in choices.items()}
        if bench.contract.allows(dims) and bench.elements(dims) <= bench.budget:
            return dims
    return bench.small_dims()


def _sizes(bench: Bench, strategy: Strategy, name: str) -> tuple[int, ...]:
    dim = bench.contract.dims[name]
    if bench.contract.behaviour.fixed_shape:
        return (dim.usual,)
    if strategy is Strategy.REGULAR:
        return tuple(n for n in dim.candidates if n & (n - 1) == 0) or (dim.usual,)
    if strategy is not Strategy.MIXED:
        return dim.candidates
    around = (size + step for size in bench.constants for step in (-1, 0, 1))
    return tuple(sorted(n for n in {*dim.candidates, *ODD_SIZES, *around} if dim.allows(n)))


# --- building its arguments


def fuzz_args(bench: Bench, case: CaseRecord) -> list[Arg]:
    """The arguments of a case, planted values and layout included; the same bytes each time."""
    args = bench.args(case)
    for place, item in _tensors(bench):
        arg = args[place]
        assert isinstance(arg, torch.Tensor)  # noqa: S101 - inputs are tensors
        planted = _planted(bench, case, item, arg)
        args[place] = _laid_out(planted, Layout(case.params["layout"]))
    return args


def _tensors(bench: Bench) -> Iterator[tuple[int, Input]]:
    return ((bench.position(item.name), item) for item in bench.contract.inputs)


def _planted(bench: Bench, case: CaseRecord, item: Input, tensor: torch.Tensor) -> torch.Tensor:
    """One value in 64, and one at least, replaced, where the contract lets this input hold it."""
    plant = case.params["plant"]
    free = bench.contract.behaviour.nan is not NanPolicy.UNDEFINED and item.domain.allows_nonfinite
    if not plant or not free or not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    places = Stream(case.seed, "plant", item.name).integers(
        0, tensor.numel(), 1 + tensor.numel() // 64
    )
    flat = tensor.flatten()
    flat[torch.from_numpy(places)] = PLANTS[plant]
    return flat.reshape(tensor.shape)


def _laid_out(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    if layout is Layout.TRANSPOSED and tensor.dim() >= 2:
        return tensor.mT.contiguous().mT
    if layout is Layout.STEP2 and tensor.dim() >= 1:
        view = _blank((*tensor.shape[:-1], 2 * tensor.shape[-1]), tensor.dtype)[..., ::2]
        return view.copy_(tensor)
    if layout is Layout.OFFSET:
        view = _blank((tensor.numel() + 1,), tensor.dtype)[1:].view(tensor.shape)
        return view.copy_(tensor)
    return tensor


def _blank(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    gap = float("nan") if dtype.is_floating_point else 0
    return torch.full(tuple(shape), gap, dtype=dtype)


# --- judging


def fuzz_judge(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """One call against fp64. An exception of the kernel's own is a refusal, not a failure."""
    args = fuzz_args(bench, case)
    reply = subject.call(args)
    refusal = bench.refused(reply)
    if refusal is not None:
        return refusal
    outputs = bench.results(case, args, reply)
    return outputs if isinstance(outputs, Finding) else bench.compare(case, args, outputs)


def judge_afresh(
    bench: Bench, case: CaseRecord, candidate: Subject
) -> tuple[Finding, tuple[CallDigest, ...]]:
    """The finding in a fresh process, and the digests of its calls: what a replay must meet."""
    candidate.restart()
    recorder = Recorder(candidate)
    return fuzz_judge(bench, case, recorder), tuple(recorder.calls)


def with_tolerances(task: Task, atol: Mapping[str, float]) -> Task:
    """The task judged by absolute tolerances per dtype in place of the default rule."""
    tolerances = {dtype: Tolerance(bound) for dtype, bound in atol.items()}
    return replace(task, contract=replace(task.contract, tolerances=tolerances))


@dataclass(slots=True)
class Tally:
    """Findings so far."""

    passed: int = 0
    failed: int = 0
    open: dict[tuple[GateStatus, str], int] = field(default_factory=dict)
    failures: list[Counterexample] = field(default_factory=list)

    @property
    def notes(self) -> tuple[CaseNote, ...]:
        return tuple(CaseNote(status, why, n) for (status, why), n in self.open.items())


def fuzz(
    bench: Bench,
    candidate: Subject,
    *,
    seed: int,
    iterations: int,
    strategy: Strategy = Strategy.MIXED,
    check: Callable[[], None] = lambda: None,
) -> Tally:
    """Draw and judge ``iterations`` cases; shrink and re-create the first few failures.

    Raises InfrastructureError, and whatever ``check`` raises between two cases.
    """
    tally = Tally()
    for number in range(iterations):
        check()
        case = fuzz_case(bench, strategy, seed, number)
        finding = fuzz_judge(bench, case, candidate)
        if finding.passed:
            tally.passed += 1
        elif not finding.failed:
            key = (finding.status, finding.detail)
            tally.open[key] = tally.open.get(key, 0) + 1
        else:
            tally.failed += 1
            if len(tally.failures) < KEPT_FAILURES:
                tally.failures.append(_counterexample(bench, case, finding, candidate))
    return tally


def _counterexample(
    bench: Bench, case: CaseRecord, finding: Finding, candidate: Subject
) -> Counterexample:
    small = smallest(
        bench.contract,
        case,
        lambda trial: fuzz_judge(bench, trial, candidate).failed,
        max_trials=MINIMISE_TRIALS,
    )
    again, calls = judge_afresh(bench, small, candidate)
    if not again.failed:
        small = case
        again, calls = judge_afresh(bench, case, candidate)
    shown = again if again.failed else finding
    late = "" if again.failed else " (only after earlier calls in the same process)"
    return Counterexample(
        case=small,
        detail=shown.detail + late,
        calls=calls,
        output=shown.output,
        index=shown.index,
        expected=shown.expected,
        got=shown.got,
        slices=shown.slices,
        minimised_from=dict(case.dims) if small != case else {},
    )
