"""Calibration: how tolerances trade recall against false positives on kernels with known faults.

Every kernel of a corpus meets the same drawn cases. Each call becomes one observation: the kernel's
greatest error, eager's, the rounding floor, and what fp32 roundings of the inputs alone would move
(the comparator's own terms). Every rule is then a threshold on observations, so
a sweep costs no further calls. Cases with even numbers set the tolerances, cases with odd numbers
judge every rule: nothing is scored on what it was fitted to. Absolute tolerances are set on values
of ordinary size; how they fare on large ones is scored and shown like the rest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch

from verifier.fuzz import (
    BIG,
    EXTREME,
    Plant,
    Strategy,
    fuzz_args,
    fuzz_case,
    signs_count,
)
from verifier.gates.g10_range import GATE as RANGE
from verifier.gates.g10_range import excused
from verifier.pipeline import build_bench
from verifier.records import CaseRecord, Environment
from verifier.referee.bench import Bench
from verifier.referee.compare import ILL_CONDITIONED, Rule, allowance, check_classes
from verifier.session import Job, Session, UsageError, make_request, read_kernel
from verifier.source import read_source
from verifier.subject import Arg, CallOptions, Reply, ReplyKind, Subject, config_of

FACTORS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
"""Factors of the default rule that the sweep tries."""

ATOLS: Final = tuple(m * 10.0**e for e in range(-8, 1) for m in (1, 3))
"""Absolute tolerances that the sweep tries, the same one for all ops."""

MARGIN: Final = 2.0
"""A calibrated tolerance is this many times the greatest error of a control, rounded up."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One kernel of a corpus, from its index."""

    label: str
    task: str
    wrong: bool
    kernel: Path
    declared: Mapping[str, float]
    """Absolute tolerance by dtype, as its source declares it; empty where it declares none."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One call. ``error`` is infinite for a wrong class map, shape or dtype, and for a crash."""

    label: str
    task: str
    wrong: bool
    strategy: Strategy
    number: int
    dtype: str
    error: float
    eager_error: float
    floor: float
    conditioning: float = 0.0
    """How far roundings of the inputs move the answer; measured where it could decide, else 0."""
    plant: str = ""
    """The kind of odd value among the inputs, if any."""
    ill: bool = False
    """Eager itself is so far off that a finite error says nothing about the kernel."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one rule flags: kernels and single cases, of the wrong ones and of the controls."""

    rule: str
    wrong_kernels: int
    wrong_kernels_flagged: int
    wrong_cases: int
    wrong_cases_flagged: int
    control_kernels: int
    control_kernels_flagged: int
    control_cases: int
    control_cases_flagged: int


@dataclass(frozen=True, slots=True)
class Tried:
    """One absolute tolerance for one op and dtype, and what it flags among the odd cases."""

    atol: float
    point: Point


@dataclass(frozen=True, slots=True)
class OpSweep:
    """The sweep of absolute tolerances for one op and dtype, on values of ordinary size.

    ``clean`` is the smallest of the sweep that flags no even case of a control, ``calibrated`` the
    table's own figure, ``declared`` what the corpus states; None where there is none.
    """

    task: str
    dtype: str
    clean: Tried | None
    calibrated: Tried | None
    declared: Tried | None
    sweep: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The whole study of one corpus."""

    group: str
    seed: int
    iterations: int
    environment: Environment
    points: Mapping[str, tuple[Point, ...]]
    """By strategy: each rule of the sweep, judged on the odd cases."""
    tolerances: Mapping[str, Mapping[str, float]]
    """Calibrated absolute tolerance by task and dtype, from the even cases of the controls."""
    by_op: tuple[OpSweep, ...] = ()
    by_plant: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    """By kind of planted value: each rule of the sweep, judged on the odd adversarial cases."""
    refused: Mapping[str, int] = field(default_factory=dict)


def read_index(suite: Path, group: str) -> list[Entry]:
    """The kernels of one corpus. Raises UsageError naming what does not fit."""
    path = suite / "kernels" / group / "index.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["kernels"]
        return [_entry(path.parent, row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: no corpus index: {error}") from error


def _entry(folder: Path, row: Mapping[str, Any]) -> Entry:
    return Entry(
        label=row["label"],
        task=row["task"],
        wrong=row["role"] != "control",
        kernel=folder / f"{row['label']}.py",
        declared=row.get("declared", {}).get("atol", {}),
    )


# --- observing


def observe(
    session: Session, suite: Path, entry: Entry, *, seed: int, iterations: int
) -> Iterator[Observation]:
    """Every case of every strategy on one kernel. Refused cases give nothing."""
    source = read_kernel(entry.kernel)
    job = Job(suite / "tasks" / entry.task, entry.kernel, seed=seed)
    request = make_request(job, read_source(source))
    bench = build_bench(request, session.mode, session.device)
    candidate = session.sandbox.load(source=source, **request.choice.options())
    try:
        for strategy in (Strategy.REGULAR, Strategy.BOUNDARY, Strategy.ADVERSARIAL):
            for number in range(iterations):
                # Drawn without the kernel's tile sizes: all kernels of a task meet the same cases.
                case = fuzz_case(bench, strategy, seed, number)
                yield from _observed(bench, case, candidate, entry, strategy, number)
    finally:
        candidate.close()


def _observed(
    bench: Bench,
    case: CaseRecord,
    subject: Subject,
    entry: Entry,
    strategy: Strategy,
    number: int,
) -> Iterator[Observation]:
    args = fuzz_args(bench, case)
    golden, eager = bench.golden(args), bench.eager(args)
    if isinstance(golden, str) or not eager.returned:
        return
    reply = subject.call(args, CallOptions(config=config_of(case.seed)))
    if reply.kind is ReplyKind.RAISED:
        return
    errors = _errors(bench, case, args, reply)
    moves: tuple[float, ...] | None = None
    for place, (truth, ref) in enumerate(zip(golden, eager.outputs, strict=True)):
        one = _observation(entry, strategy, number, case, truth, ref, errors[place])
        if one.floor + one.eager_error < one.error < math.inf:
            moves = moves or bench.sensitivity(args)
            move = moves[place] if math.isfinite(moves[place]) else 0.0
            one = replace(one, conditioning=move)
        yield one


def _observation(
    entry: Entry,
    strategy: Strategy,
    number: int,
    case: CaseRecord,
    truth: torch.Tensor,
    ref: torch.Tensor,
    error: float,
) -> Observation:
    floor = allowance(truth, ref, ref.dtype, Rule(factor=0.0)).atol
    eager_error = allowance(truth, ref, ref.dtype, Rule(factor=1.0)).atol - floor
    finite = truth[truth.isfinite() & truth.to(ref.dtype).isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return Observation(
        entry.label,
        entry.task,
        entry.wrong,
        strategy,
        number,
        "/".join(case.dtypes.values()) or str(ref.dtype).removeprefix("torch."),
        error,
        eager_error,
        floor,
        plant=case.params["plant"],
        ill=ref.is_floating_point() and eager_error > ILL_CONDITIONED * scale,
    )


def _errors(bench: Bench, case: CaseRecord, args: Sequence[Arg], reply: Reply) -> list[float]:
    """The greatest error of each output; infinite where no tolerance could excuse it."""
    outputs = bench.results(case, args, reply)
    golden, eager = bench.golden(args), bench.eager(args).outputs
    if not isinstance(outputs, tuple):
        return [math.inf] * len(eager)
    assert not isinstance(golden, str)  # noqa: S101 - the caller saw to it
    signs = RANGE.zero_signs(bench, args, outputs) if signs_count(bench, case) else ()
    if any(finding.failed for finding in signs):
        return [math.inf] * len(eager)
    if case.params["plant"] in EXTREME:
        flush = bench.contract.behaviour.flush_subnormals
        outputs = tuple(
            excused(*three, flush=flush) if three[2].is_floating_point() else three[2]
            for three in zip(golden, eager, outputs, strict=True)
        )
    return [_error(*three) for three in zip(golden, eager, outputs, strict=True)]


def _error(golden: torch.Tensor, eager: torch.Tensor, got: torch.Tensor) -> float:
    if not got.is_floating_point():
        return 0.0 if torch.equal(golden.to(got.dtype), got) else math.inf
    if not check_classes("", golden, eager, got).passed:
        return math.inf
    both = golden.isfinite() & got.isfinite() & golden.to(got.dtype).isfinite()
    if not both.any():
        return 0.0
    return float((got.double() - golden.double())[both].abs().max())


# --- calibrating and scoring


def calibrated(observations: Iterable[Observation]) -> dict[str, dict[str, float]]:
    """Absolute tolerance by task and dtype: twice the greatest finite error of its controls."""
    greatest: dict[str, dict[str, float]] = {}
    for one in observations:
        if one.wrong or one.ill or one.plant in BIG or not math.isfinite(one.error):
            continue
        by_dtype = greatest.setdefault(one.task, {})
        by_dtype[one.dtype] = max(by_dtype.get(one.dtype, 0.0), one.error)
    return {
        task: {dtype: round_up(MARGIN * error) for dtype, error in by_dtype.items()}
        for task, by_dtype in greatest.items()
    }


def round_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten; at least 1e-12, because 0 calls for luck."""
    if value <= 1e-12:
        return 1e-12
    power = math.floor(math.log10(value))
    steps = (float(f"{mantissa}e{power + up}") for up in (0, 1) for mantissa in (1, 2, 5))
    return next(step for step in steps if step >= value)


Judge = Callable[[Observation], bool]


def score(rule: str, flags: Judge, observations: Sequence[Observation]) -> Point:
    """Kernels and cases that a rule flags. A kernel is flagged by any one of its cases; a case on
    which eager is no guide flags none, unless its error is infinite."""
    sides = {wrong: [o for o in observations if o.wrong is wrong] for wrong in (True, False)}
    flagged = {
        wrong: [o for o in side if _says_much(o) and flags(o)] for wrong, side in sides.items()
    }

    def kernels(side: Iterable[Observation]) -> int:
        return len({one.label for one in side})

    return Point(
        rule=rule,
        wrong_kernels=kernels(sides[True]),
        wrong_kernels_flagged=kernels(flagged[True]),
        wrong_cases=len(sides[True]),
        wrong_cases_flagged=len(flagged[True]),
        control_kernels=kernels(sides[False]),
        control_kernels_flagged=kernels(flagged[False]),
        control_cases=len(sides[False]),
        control_cases_flagged=len(flagged[False]),
    )


def _says_much(one: Observation) -> bool:
    return not one.ill or math.isinf(one.error)


def _plain_rule(factor: float) -> Judge:
    return lambda one: one.error > factor * one.eager_error + one.floor


def _factor_rule(factor: float) -> Judge:
    """The comparator's rule: the conditioning of the input counts as well."""
    return lambda one: one.error > factor * one.eager_error + one.floor + one.conditioning


def _atol_rule(atol: float) -> Judge:
    return lambda one: one.error > atol


def _table_rule(table: Mapping[str, Mapping[str, float]]) -> Judge:
    """A tolerance for each task and dtype; where there is none, only infinite errors count."""
    return lambda one: (
        one.error > table.get(one.task, {}).get(one.dtype, math.inf) or (math.isinf(one.error))
    )


def _declared_rule(entries: Iterable[Entry]) -> Judge:
    declared = {entry.label: entry.declared for entry in entries}
    return lambda one: (
        math.isinf(one.error) or (one.error > declared[one.label].get(one.dtype, math.inf))
    )


def rules(
    entries: Sequence[Entry], tolerances: Mapping[str, Mapping[str, float]]
) -> list[tuple[str, Judge]]:
    """Every rule of the sweep by name."""
    table = [(f"{factor:g} x eager", _factor_rule(factor)) for factor in FACTORS]
    table += [("2 x eager, plain", _plain_rule(2.0))]
    table += [("calibrated atol", _table_rule(tolerances))]
    if all(entry.declared for entry in entries):
        table += [("declared atol", _declared_rule(entries))]
    return table + [(f"atol {atol:g}", _atol_rule(atol)) for atol in ATOLS]


def op_sweeps(
    entries: Iterable[Entry],
    tolerances: Mapping[str, Mapping[str, float]],
    observations: Iterable[Observation],
) -> tuple[OpSweep, ...]:
    """For each op and dtype, what each absolute tolerance of the sweep flags."""
    declared: dict[str, dict[str, float]] = {}
    for entry in entries:
        for dtype, atol in entry.declared.items():
            known = declared.setdefault(entry.task, {})
            known[dtype] = max(known.get(dtype, 0.0), atol)
    groups: dict[tuple[str, str], list[Observation]] = {}
    for one in observations:
        if one.plant not in BIG:
            groups.setdefault((one.task, one.dtype), []).append(one)
    return tuple(
        _op_sweep(task, dtype, declared.get(task, {}), tolerances.get(task, {}), rows)
        for (task, dtype), rows in sorted(groups.items())
    )


def _op_sweep(
    task: str,
    dtype: str,
    declared: Mapping[str, float],
    tolerances: Mapping[str, float],
    rows: Sequence[Observation],
) -> OpSweep:
    even, odd = ([one for one in rows if one.number % 2 == side] for side in (0, 1))

    def tried(atol: float | None) -> Tried | None:
        return None if atol is None else _tried(atol, odd)

    clean = (atol for atol in ATOLS if not _tried(atol, even).point.control_cases_flagged)
    return OpSweep(
        task,
        dtype,
        clean=tried(next(clean, None)),
        calibrated=tried(tolerances.get(dtype)),
        declared=tried(declared.get(dtype)),
        sweep=tuple(_tried(atol, odd) for atol in ATOLS),
    )


def _tried(atol: float, observations: Sequence[Observation]) -> Tried:
    return Tried(atol, score(f"atol {atol:g}", _atol_rule(atol), observations))


def calibrate(
    session: Session,
    suite: Path,
    group: str,
    *,
    seed: int,
    iterations: int,
    only: Sequence[str] = (),
) -> Calibration:
    """Observe a whole corpus, or its tasks whose names hold one of ``only``, and score every rule.
    Raises UsageError or InfrastructureError."""
    entries = [
        entry
        for entry in read_index(suite, group)
        if not only or any(text in entry.task for text in only)
    ]
    if not entries:
        raise UsageError(f"no task of {group} is called anything with {' or '.join(only)}")
    observations: list[Observation] = []
    refused: dict[str, int] = {}
    for entry in entries:
        rows = list(observe(session, suite, entry, seed=seed, iterations=iterations))
        observations += rows
        missing = 3 * iterations - len({(row.strategy, row.number) for row in rows})
        if missing:
            refused[entry.label] = missing
    tolerances = calibrated(one for one in observations if one.number % 2 == 0)
    held_out = [one for one in observations if one.number % 2 == 1]
    table = rules(entries, tolerances)
    return Calibration(
        group=group,
        seed=seed,
        iterations=iterations,
        environment=session.environment,
        points=_points(held_out, table),
        tolerances=tolerances,
        by_op=op_sweeps(entries, tolerances, observations),
        by_plant=_by_plant(held_out, table),
        refused=refused,
    )


def _points(
    observations: Sequence[Observation], table: Sequence[tuple[str, Judge]]
) -> dict[str, tuple[Point, ...]]:
    points = {}
    for strategy in (Strategy.REGULAR, Strategy.BOUNDARY, Strategy.ADVERSARIAL):
        own = [one for one in observations if one.strategy is strategy]
        points[strategy.value] = tuple(score(name, flags, own) for name, flags in table)
    points["all"] = tuple(score(name, flags, observations) for name, flags in table)
    return points


def _by_plant(
    observations: Sequence[Observation], table: Sequence[tuple[str, Judge]]
) -> dict[str, tuple[Point, ...]]:
    met = {plant.value: [o for o in observations if o.plant == plant] for plant in Plant}
    return {
        plant: tuple(score(name, flags, own) for name, flags in table)
        for plant, own in met.items()
        if own
    }
