"""Defence 2, threshold sweep: what would the gates reject under another soft comparator?

The soft rule allows ``factor`` times eager's error plus ``floor`` times the rounding floor. Each
kernel is called once a case: the replies are kept, and the gates judge the same replies under each
rule of the grid. A case on which the strictest and the loosest rule agree needs no more than these
two, because a wider allowance never fails what a narrower one passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

import torch

from verifier.calibrate import Entry, read_index
from verifier.contract import Task
from verifier.gate import Finding, Gate
from verifier.pipeline import GATES, MAX_DEATHS, Candidate, build_bench
from verifier.recorder import FATAL
from verifier.records import CaseRecord, GateId, GateStatus, Language
from verifier.referee.bench import Bench, digest
from verifier.referee.compare import FACTOR, Rule
from verifier.session import Job, Session, make_request, read_kernel
from verifier.source import read_source
from verifier.studies import Swayed, ThresholdPoint
from verifier.subject import ORDINARY, Arg, CallOptions, Reply, Subject

FACTORS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
FLOORS: Final = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
DEFAULT: Final = (FACTOR, 1.0)
EXACT: Final = frozenset({GateId.DETERMINISM, GateId.SIDE_EFFECTS, GateId.MEMORY, GateId.HONEST})
"""Gates in which no tolerance decides; gate 12 asks the comparator whether a stolen answer is
right, so a wider rule would accuse there. They are judged once, under the default rule."""

Point = tuple[float, float]
"""(factor, floor)"""


@dataclass(frozen=True, slots=True)
class SweptBench(Bench):
    """A bench whose soft rule has another floor; its factor is ``rule_factor`` as ever."""

    rule_floor: float = 1.0

    def rule(self, dtype: str) -> Rule:
        tolerance = self.contract.tolerances.get(dtype)
        return Rule(self.rule_factor, tolerance, floor=self.rule_floor)


def swept(bench: Bench) -> SweptBench:
    """The same bench, its caches of references included, with a floor that can be set."""
    return SweptBench(**{one.name: getattr(bench, one.name) for one in fields(bench)})


@dataclass(slots=True)
class Remembered:
    """A subject that is called once for each (place in the judging, arguments, options)."""

    subject: Subject
    _deaths: int = 0
    _replies: dict[tuple[int, str, CallOptions], Reply] = field(default_factory=dict)
    _number: int = 0
    _restarts: int = 0
    _restarted: int = 0
    _other: Remembered | None = None

    @property
    def name(self) -> str:
        return self.subject.name

    def begin(self) -> None:
        """The case is judged from its start once more."""
        self._number = self._restarts = 0
        if self._other is not None:
            self._other.begin()

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        self._number += 1
        key = (self._number, _identity(args), options)
        if key not in self._replies:
            reply = self.subject.call(args, options)
            self._deaths += reply.kind in FATAL
            self._replies[key] = reply
        return self._replies[key]

    @property
    def deaths(self) -> int:
        """Of both processes."""
        return self._deaths + (self._other.deaths if self._other is not None else 0)

    def restart(self) -> None:
        self._restarts += 1
        if self._restarts > self._restarted:
            self._restarted = self._restarts
            self.subject.restart()

    def other(self) -> Remembered:
        if self._other is None:
            self._other = Remembered(self.subject.other())
        return self._other


def _identity(args: Sequence[Arg]) -> str:
    """Values and layouts of the arguments."""
    layouts = [(a.stride(), a.storage_offset()) for a in args if isinstance(a, torch.Tensor)]
    return f"{digest(args)}{layouts}"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How one case ended under each rule: FAIL by tolerance or without one, or anything else."""

    gate: GateId
    findings: Mapping[Point, Finding]

    def failed(self, point: Point) -> bool:
        return self.findings[point].failed

    def hard(self, point: Point) -> bool:
        return self.findings[point].failed and self.findings[point].hard


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """All cases of one kernel."""

    label: str
    wrong: bool
    cases: tuple[CaseOutcome, ...]

    def rejected(self, point: Point) -> bool:
        return any(case.failed(point) for case in self.cases)

    def softly(self, point: Point) -> bool:
        """Rejected, and by nothing that stands without a tolerance."""
        return self.rejected(point) and not any(case.hard(point) for case in self.cases)

    def judged(self) -> int:
        told = (GateStatus.PASS, GateStatus.FAIL)
        return sum(case.findings[DEFAULT].status in told for case in self.cases)


@dataclass(frozen=True, slots=True)
class Grid:
    """The rules that a sweep tries; the default one is always among them."""

    factors: tuple[float, ...] = FACTORS
    floors: tuple[float, ...] = FLOORS

    @property
    def points(self) -> list[Point]:
        found = {(factor, floor) for factor in self.factors for floor in self.floors}
        return sorted(found | {DEFAULT})

    @property
    def ends(self) -> tuple[Point, Point]:
        factors = {*self.factors, DEFAULT[0]}
        floors = {*self.floors, DEFAULT[1]}
        return (min(factors), min(floors)), (max(factors), max(floors))


def sweep_kernel(
    session: Session, suite: Path, entry: Entry, grid: Grid, seed: int
) -> KernelOutcome:
    """Every gate's cases on one kernel under every rule. Raises InfrastructureError, TaskError."""
    source = read_kernel(entry.kernel)
    facts = read_source(source)
    job = Job(suite / "tasks" / entry.task, entry.kernel, seed=seed)
    request = make_request(job, facts)
    bench = swept(build_bench(request, session.mode, session.device))
    if facts.language is Language.TRITON:
        session.sandbox.compiler_begin()
    candidate = session.sandbox.load(
        source=source, entry=job.entry, convention=_convention(request.task)
    )
    try:
        cases = tuple(_outcomes(bench, candidate, grid))
    finally:
        candidate.close()
    return KernelOutcome(entry.label, entry.wrong, cases)


def _convention(task: Task) -> str:
    return task.contract.convention


def _outcomes(bench: SweptBench, candidate: Candidate, grid: Grid) -> Iterator[CaseOutcome]:
    for gate in GATES:
        if gate.applies(bench) is not None:
            continue
        deaths = 0
        for case in gate.cases(bench):
            if bench.cannot_judge(case):
                continue
            judged = Remembered(candidate)
            yield CaseOutcome(gate.info.id, _findings(gate, bench, case, judged, grid))
            deaths += judged.deaths
            if deaths >= MAX_DEATHS:
                break


def _findings(
    gate: Gate, bench: SweptBench, case: CaseRecord, candidate: Remembered, grid: Grid
) -> dict[Point, Finding]:
    """The finding at each point, from two judgements wherever these are the same."""
    eager = Remembered(bench.new_eager())

    def at(point: Point) -> Finding:
        return _judge(gate, bench, case, (candidate, eager), point)

    if gate.info.id in EXACT:
        return dict.fromkeys(grid.points, at(DEFAULT))
    strict, loose = (at(point) for point in grid.ends)
    if (strict.status, strict.hard) == (loose.status, loose.hard):
        return dict.fromkeys(grid.points, loose)
    return {point: at(point) for point in grid.points}


def _judge(
    gate: Gate,
    bench: SweptBench,
    case: CaseRecord,
    subjects: tuple[Remembered, Remembered],
    point: Point,
) -> Finding:
    """As the pipeline judges a case: eager goes first, and excuses the kernel where it fails."""
    candidate, eager = subjects
    set_so = replace(bench, rule_factor=point[0], rule_floor=point[1])
    if gate.self_check:
        eager.begin()
        own = gate.judge(set_so, case, eager)
        if not own.passed:
            return Finding(GateStatus.NOT_APPLICABLE, own.detail)
    candidate.begin()
    return gate.judge(set_so, case, candidate)


# --- the curve


def curve(outcomes: Sequence[KernelOutcome], grid: Grid) -> tuple[ThresholdPoint, ...]:
    """What each rule rejects: kernels and single cases, of the wrong ones and of the controls."""
    return tuple(_point(outcomes, point) for point in grid.points)


def _point(outcomes: Sequence[KernelOutcome], point: Point) -> ThresholdPoint:
    wrong = [one for one in outcomes if one.wrong]
    controls = [one for one in outcomes if not one.wrong]
    return ThresholdPoint(
        *point,
        wrong=len(wrong),
        wrong_rejected=sum(one.rejected(point) for one in wrong),
        wrong_rejected_softly=sum(one.softly(point) for one in wrong),
        controls=len(controls),
        controls_accused=sum(one.rejected(point) for one in controls),
        wrong_cases=sum(one.judged() for one in wrong),
        wrong_cases_failed=_failed(wrong, point),
        control_cases=sum(one.judged() for one in controls),
        control_cases_failed=_failed(controls, point),
    )


def _failed(outcomes: Iterable[KernelOutcome], point: Point) -> int:
    return sum(case.failed(point) for one in outcomes for case in one.cases)


def swayed(outcomes: Iterable[KernelOutcome], grid: Grid) -> tuple[Swayed, ...]:
    """The kernels whose rejection depends on the rule."""
    found = []
    for one in outcomes:
        rejected = tuple(point for point in grid.points if one.rejected(point))
        if rejected and len(rejected) < len(grid.points):
            gates = dict.fromkeys(
                case.gate.value for case in one.cases for point in rejected if case.failed(point)
            )
            found.append(Swayed(one.label, one.wrong, tuple(gates), rejected))
    return tuple(found)


def sweep_corpora(
    session: Session,
    suite: Path,
    groups: Sequence[str],
    *,
    grid: Grid,
    seed: int,
    only: Sequence[str] = (),
    tell: Callable[[KernelOutcome], None] = lambda outcome: None,
) -> list[KernelOutcome]:
    """Sweep every kernel of the groups. Raises UsageError for a group that has no index."""
    outcomes = []
    for group in groups:
        for entry in read_index(suite, group):
            if only and not any(text in entry.label for text in only):
                continue
            outcomes.append(sweep_kernel(session, suite, entry, grid, seed))
            tell(outcomes[-1])
    return outcomes
