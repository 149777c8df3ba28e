"""Seeded fuzzing that knows the op's schema: one kernel, many drawn situations, fp64 as the judge.

A case is a pure function of (contract, seed, strategy, number): shapes from the contract's
candidates and around the kernel's tile sizes, dtypes, value patterns, planted values (NaN and
infinities, large ones, denormals, -0.0) and layouts.
A failing case is shrunk to its smallest shape and seen again in a fresh process; its record holds
the sha256 of every call's inputs and outputs, so that it replays byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np
import torch

from verifier.contract import DomainKind, Input, NanPolicy, Output, Task, Tolerance
from verifier.gate import Finding, not_applicable
from verifier.gates.g10_range import GATE as RANGE
from verifier.gates.g10_range import settled_at_the_top
from verifier.minimise import smallest
from verifier.recorder import Recorder
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
from verifier.referee.bench import Bench, Tensors
from verifier.referee.generator import GENERATOR_VERSION, Stream, derive_seed
from verifier.referee.inputs import torch_dtype
from verifier.referee.probes import judged_dtypes
from verifier.subject import Arg, CallOptions, Subject, config_of

FUZZ_VERSION: Final = 2
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
    """The candidates, with one kind of odd value (a ``Plant``) among values of every pattern."""
    MIXED = "mixed"
    """All of it, and sizes around the kernel's tiles, and layouts."""


class Layout(StrEnum):
    """How the inputs lie in memory; whatever lies between their values is NaN."""

    DENSE = "dense"
    TRANSPOSED = "transposed"
    STEP2 = "step2"
    OFFSET = "offset"


class Plant(StrEnum):
    """Values that stand among ordinary ones, one in 64 of them."""

    NAN = "nan"
    INF = "inf"
    MINUS_INF = "-inf"
    LARGE = "large"
    """Up to 1e4, of either sign: an exponential overflows, and in half precision a square."""
    LARGEST = "largest"
    """Next to the greatest number of the dtype, where the answer does not hang on the order of a
    sum."""
    DENORMAL = "denormal"
    MINUS_ZERO = "-0"


CONSTANTS: Final[Mapping[Plant, float]] = {
    Plant.NAN: float("nan"),
    Plant.INF: float("inf"),
    Plant.MINUS_INF: float("-inf"),
    Plant.MINUS_ZERO: -0.0,
}
NONFINITE: Final = (Plant.NAN, Plant.INF, Plant.MINUS_INF)
BIG: Final = (Plant.LARGE, Plant.LARGEST)
EXTREME: Final = (*BIG, Plant.DENORMAL, Plant.MINUS_ZERO)
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
    layout = _pick(stream, tuple(Layout))
    dtypes = _pick(stream, judged_dtypes(bench))
    plant = _plant(strategy, stream, number, plants(bench, dtypes))
    return CaseRecord(
        label=f"{strategy} {number}",
        dims=_draw_dims(bench, strategy, stream),
        dtypes=dtypes,
        fill=_pick(stream, fills),
        seed=derive_seed(seed, "fuzz", strategy, number),
        params={
            "strategy": strategy.value,
            "plant": plant,
            "layout": layout if mixed and _one_in(stream, 3) else Layout.DENSE.value,
        },
    )


def _plant(strategy: Strategy, stream: Stream, number: int, options: Sequence[Plant]) -> str:
    """Adversarial cases take the plants in turn, each for an even and an odd number, so that few
    cases meet them all, whichever half of the cases one looks at; mixed ones now and then one."""
    if options and strategy is Strategy.ADVERSARIAL:
        return options[number // 2 % len(options)].value
    if options and strategy is Strategy.MIXED and _one_in(stream, 4):
        return _pick(stream, options).value
    return ""


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


def plants(bench: Bench, dtypes: Mapping[str, str]) -> tuple[Plant, ...]:
    """What the contract lets its inputs hold under these dtypes, and what can then be judged."""
    contract = bench.contract

    def floats(item: Input | Output) -> bool:
        return torch_dtype(contract.dtype(item, dtypes)).is_floating_point

    inputs = [item for item in contract.inputs if floats(item)]
    fit = [plant for plant in Plant if any(_holds(bench, item, plant) for item in inputs)]
    if not any(floats(item) for item in contract.outputs):
        fit = [plant for plant in fit if plant in NONFINITE]
    if not settled_at_the_top(contract, dtypes):
        fit = [plant for plant in fit if plant is not Plant.LARGEST]
    return tuple(fit)


def _holds(bench: Bench, item: Input, plant: Plant) -> bool:
    domain = item.domain
    if plant in NONFINITE:
        free = bench.contract.behaviour.nan is not NanPolicy.UNDEFINED
        return free and domain.allows_nonfinite
    return domain.kind is DomainKind.REAL and domain.allows_extreme and not domain.bounded


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
    if not case.params["plant"] or not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    plant = Plant(case.params["plant"])
    if not _holds(bench, item, plant):
        return tensor
    stream = Stream(case.seed, "plant", item.name)
    drawn = stream.integers(0, tensor.numel(), 1 + tensor.numel() // 64)
    places = torch.from_numpy(np.unique(drawn))
    flat = tensor.flatten()
    flat[places] = _plant_values(plant, tensor.dtype, stream, len(places)).to(tensor.dtype)
    return flat.reshape(tensor.shape)


def _plant_values(plant: Plant, dtype: torch.dtype, stream: Stream, count: int) -> torch.Tensor:
    """So many fp64 values that are what their name says once they are rounded to ``dtype``."""
    if plant in CONSTANTS:
        return torch.full((count,), CONSTANTS[plant], dtype=torch.float64)
    signs = torch.from_numpy(stream.integers(0, 2, count)) * 2.0 - 1.0
    spread = signs * (0.5 + torch.from_numpy(stream.uniform(count)) / 2)
    if plant is Plant.DENORMAL:
        depth = torch.from_numpy(stream.integers(0, 8, count))
        return torch.ldexp(spread, -depth) * torch.finfo(dtype).tiny
    return spread * (1e4 if plant is Plant.LARGE else torch.finfo(dtype).max)


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
    """One call against fp64. An exception of the kernel's own is a refusal, not a failure; nor is
    what eager itself does not satisfy."""
    if bench.contract.behaviour.random:
        return not_applicable("the op draws random numbers")
    args = fuzz_args(bench, case)
    reply = subject.call(args, CallOptions(config=config_of(case.seed)))
    refusal = bench.refused(reply)
    if refusal is not None:
        return refusal
    outputs = bench.results(case, args, reply)
    if isinstance(outputs, Finding):
        return outputs
    finding = _compare(bench, case, args, outputs)
    why = _reference_fails(bench, case, args) if finding.failed else ""
    return not_applicable(f"reference does not satisfy: {why}") if why else finding


def _reference_fails(bench: Bench, case: CaseRecord, args: Sequence[Arg]) -> str:
    """What eager's own answer would be blamed for, '' for nothing."""
    own = bench.results(case, args, bench.eager(args))
    finding = own if isinstance(own, Finding) else _compare(bench, case, args, own)
    return finding.detail if finding.failed else ""


def _compare(bench: Bench, case: CaseRecord, args: Sequence[Arg], outputs: Tensors) -> Finding:
    """The comparator; extreme values are judged as gate 10 judges them."""
    plant = case.params["plant"]
    refused = isinstance(bench.golden(args), str) or not bench.eager(args).returned
    if plant not in EXTREME or refused:
        return bench.compare(case, args, outputs)
    if plant in BIG:
        bench = _without_absolute_tolerances(bench)
    return RANGE.compare(bench, case, args, outputs, signs=signs_count(bench, case))


def signs_count(bench: Bench, case: CaseRecord) -> bool:
    """Whether signs of zeros are compared: where -0.0 is planted and nothing is summed, not even
    one term with a padded zero (that sum is 0.0)."""
    dims = {dim for item in bench.contract.inputs for dim in item.shape}
    alone = dims <= set(bench.contract.behaviour.independent)
    return alone and case.params["plant"] == Plant.MINUS_ZERO


def _without_absolute_tolerances(bench: Bench) -> Bench:
    """An absolute figure is meant for values of ordinary size: others get the default rule."""
    kept = {name: one for name, one in bench.contract.tolerances.items() if one.rtol}
    return replace(bench, contract=replace(bench.contract, tolerances=kept))


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
