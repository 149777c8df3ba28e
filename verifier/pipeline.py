"""From a task and a kernel to a verdict: the loose test, the twelve gates in order, the clock.

The pipeline knows no gate by name. For each gate and case it lets eager go first, records what
went in and came out of every call, stops early when the kernel cannot run at all, shrinks a failure
to its smallest shape and re-creates it in a fresh process before it believes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import torch

from verifier.contract import Task, TaskError
from verifier.conventions.choose import Choice, choose
from verifier.device_lock import DeviceLock
from verifier.gate import MAX_EVIDENCE, Finding, Gate, summary
from verifier.gates import (
    g01_agreement,
    g02_nonfinite,
    g03_determinism,
    g04_shapes,
    g05_dtypes,
    g06_accumulation,
    g07_layout,
    g08_side_effects,
    g09_memory,
    g10_range,
    g11_metamorphic,
    g12_honest,
)
from verifier.gradients import BackwardGate, GradientBench, derive_bench, merged
from verifier.health.context import context_demand
from verifier.loose import run_loose
from verifier.measure.latency import measure
from verifier.measure.looks import WrongOutputError
from verifier.minimise import smallest
from verifier.recorder import Bar, Recorder
from verifier.records import (
    NOT_ASKED,
    CallDigest,
    CaseNote,
    CaseRecord,
    Counterexample,
    DeepResult,
    DeviceMode,
    Environment,
    EventKind,
    GateId,
    GateResult,
    GateStatus,
    KernelRef,
    LooseResult,
    Measurement,
    Progress,
    TaskRef,
    Verdict,
    to_json,
)
from verifier.referee.bench import Bench, load_reference
from verifier.referee.refusals import ASKED_INSTEAD, asked_instead, settled
from verifier.source import SourceFacts
from verifier.subject import InfrastructureError, ReplyKind, Subject, config_of

GATES: Final[tuple[Gate, ...]] = (
    g01_agreement.GATE,
    g02_nonfinite.GATE,
    g03_determinism.GATE,
    g04_shapes.GATE,
    g05_dtypes.GATE,
    g06_accumulation.GATE,
    g07_layout.GATE,
    g08_side_effects.GATE,
    g09_memory.GATE,
    g10_range.GATE,
    g11_metamorphic.GATE,
    g12_honest.GATE,
)

BACKWARD_GATES: Final[tuple[Gate, ...]] = tuple(map(BackwardGate, GATES))
"""The same as they are asked about gradients."""

MAX_DEATHS: Final = 3
"""So many fatal replies in one gate end that gate."""

MAX_FAILURES: Final = 4
"""So many failed cases end a gate: the finding is made, more of the same only costs time."""

MINIMISE_TRIALS: Final = 24
MINIMISE_S: Final[Mapping[DeviceMode, float]] = {
    DeviceMode.CPU_INTERPRET: 1.0,
    DeviceMode.CUDA: 3.0,
}

TOTAL_S: Final = 600.0
"""So long a whole verification may take by default; then what is left stays open. It bounds kernels
that take just less than their limit in every call."""

Emit = Callable[[Progress], None]

Deep = Callable[[Bench, Callable[[], None]], Iterable[DeepResult]]
"""Looks into the kernel at work; calls its second argument meanwhile, which may raise."""


class Candidate(Subject, Protocol):
    """A subject that is a sandboxed process: it also has a log and can be closed."""

    @property
    def log(self) -> str: ...

    def close(self) -> None: ...


class Cancelled(Exception):
    """Somebody asked to stop this verification."""


class OverdueError(Exception):
    """The verification has used up its time."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to judge. ``gates`` limits the judging to some gates; the others are NOT_APPLICABLE.
    After ``total_s`` seconds what has not been judged is INCONCLUSIVE. With ``fail_fast`` the first
    failed case ends it all. With ``deep`` it is looked into afterwards (docs/deep.md)."""

    task: Task
    facts: SourceFacts
    entry: str
    seed: int
    gates: frozenset[GateId] = frozenset(GateId)
    timed: bool = True
    total_s: float = TOTAL_S
    fail_fast: bool = False
    deep: bool = False

    @property
    def choice(self) -> Choice:
        """How the kernel is called."""
        return choose(self.task.contract, self.facts.text, self.entry)


Failure = tuple[CaseRecord, Finding, tuple[CallDigest, ...]]


@dataclass(slots=True)
class GateRun:
    """The findings of one gate so far."""

    gate: Gate
    passed: int = 0
    failures: list[Failure] = field(default_factory=list)
    open: dict[tuple[GateStatus, str], int] = field(default_factory=dict)
    deaths: int = 0
    evidence: list[str] = field(default_factory=list)
    asked_instead: list[CaseRecord] = field(default_factory=list)

    def is_new(self, other: CaseRecord) -> bool:
        """Whether a case, refused at its own sizes, is yet to be asked at these."""
        params = {**other.params, ASKED_INSTEAD: None}
        bare = replace(other, label="", seed=0, params=params)
        new = bare not in self.asked_instead
        self.asked_instead.append(bare)
        return new

    def note(self, status: GateStatus, reason: str) -> None:
        key = (status, reason)
        self.open[key] = self.open.get(key, 0) + 1

    def add(self, case: CaseRecord, finding: Finding, recorder: Recorder) -> None:
        self.deaths += recorder.deaths
        if finding.failed:
            self.failures.append((case, finding, tuple(recorder.calls)))
        elif finding.passed:
            self.passed += 1
            if finding.detail and finding.detail not in self.evidence:
                self.evidence.append(finding.detail)
        else:
            self.note(finding.status, finding.detail)

    @property
    def settled(self) -> bool:
        return len(self.failures) >= MAX_FAILURES or self.deaths >= MAX_DEATHS

    @property
    def status(self) -> GateStatus:
        statuses = {status for status, _ in self.open}
        if self.failures:
            return GateStatus.FAIL
        for status in (GateStatus.ERROR, GateStatus.INCONCLUSIVE):
            if status in statuses:
                return status
        return GateStatus.PASS if self.passed else GateStatus.NOT_APPLICABLE

    @property
    def worst_failure(self) -> Failure:
        return next((item for item in self.failures if item[1].hard), self.failures[0])


class Verification:
    """One run of the pipeline over one kernel."""

    def __init__(
        self,
        request: Request,
        candidate: Candidate | None,
        bench: Bench,
        environment: Environment,
        emit: Emit,
        check: Callable[[], None] = lambda: None,
        lock: DeviceLock | None = None,
        backward: Verification | None = None,
        gates: Sequence[Gate] = GATES,
        deep: Deep | None = None,
    ) -> None:
        """``backward`` asks BACKWARD_GATES about the gradients, if the task declares any; ``deep``
        looks into the kernel at work, if somebody asked for that."""
        self._deep = deep
        self._backward = backward
        self._stop = ""
        self._lock = lock or DeviceLock.alone()
        self._waited_before_s = self._lock.waited_s
        self._request = request
        self._candidate = candidate
        self._bench = bench
        self._environment = environment
        self._other_is_clean = True
        """Whether the kernel's other process has re-created failures at most."""
        self._cancelled = check
        self._bar = Bar(bench, gates, self._check, lambda: self._lock.room(self._check))
        self._ends: set[ReplyKind] = set()
        """How its calls have ended so far."""
        self._in_passing: dict[GateId, dict[GateId, Failure]] = {}
        """What gates would say of other gates' calls, of one for each of those, until it is their
        turn."""
        self._emit_progress = emit
        self._started = time.perf_counter()
        self._started_at = datetime.now(UTC).isoformat(timespec="milliseconds")

    def run(self) -> Verdict:
        """Judge the kernel. Raises InfrastructureError or Cancelled; a bad kernel is a verdict."""
        return self._run()

    def retire(self) -> None:
        """End its processes, so that nothing of them is there when a kernel is timed."""
        self._retire_other()
        if self._candidate is not None:
            self._candidate.restart()

    def _retire_other(self) -> None:
        if self._candidate is not None:
            self._candidate.other().restart()

    def _run(self) -> Verdict:
        self._emit(EventKind.STARTED, self._announcement())
        with self._lock.shared(self._cancelled):
            loose = self._loose()
            results = self._gates()
            if self._backward is not None:
                self._backward.retire()
        verdict = self._verdict(loose, results, ())
        if verdict.correct and self._request.timed and self._candidate is not None:
            self._retire_other()
            verdict = self._measured(verdict)
        if self._deep is not None:
            verdict = replace(verdict, deep=self._looked_into(self._deep))
        self._emit_log()
        final = replace(verdict, duration_ms=self._elapsed() * 1e3)
        self._emit(EventKind.VERDICT, to_json(final))
        return final

    def _check(self) -> None:
        """Before each case and each call. Raises Cancelled or OverdueError."""
        self._cancelled()
        self._lock.give_way(self._cancelled)
        waited_s = self._lock.waited_s - self._waited_before_s
        if self._elapsed() - waited_s > self._request.total_s:
            raise OverdueError(f"its {self._request.total_s:.0f} s for all gates were used up")

    # --- events

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    def _emit(self, kind: EventKind, payload: Mapping[str, Any]) -> None:
        self._emit_progress(Progress(round(self._elapsed(), 4), kind, payload))

    def _announcement(self) -> dict[str, Any]:
        facts, contract = self._request.facts, self._request.task.contract
        return {
            "task": contract.slug,
            "kernel": facts.sha256,
            "language": facts.language.value,
            "seed": self._request.seed,
            "environment": to_json(self._environment),
        }

    def _emit_log(self) -> None:
        text = self._candidate.log if self._candidate is not None else ""
        if text:
            self._emit(EventKind.LOG, {"source": "kernel", "text": text})

    # --- stages

    def _loose(self) -> LooseResult | None:
        if self._candidate is None:
            return None
        try:
            recorder = Recorder(self._candidate, self._check, config=config_of(self._request.seed))
            result = run_loose(self._bench, recorder)
            self._ends.update(recorder.kinds)
        except OverdueError:
            return None
        if result is not None:
            self._emit(EventKind.LOOSE, to_json(result))
        return result

    def _gates(self) -> tuple[GateResult, ...]:
        results: list[GateResult] = []
        stop = self._request.facts.problem
        for gate in GATES:
            self._cancelled()
            self._emit(EventKind.GATE_STARTED, {"gate": gate.info.id.value})
            started = time.perf_counter()
            result, stop = self._one_gate(gate, stop)
            if self._backward is not None and not stop and result.reason != NOT_ASKED:
                result = merged(result, self._backward.ask(gate.info.id))
                if self._request.fail_fast and result.status is GateStatus.FAIL:
                    stop = _ended_by(gate)
            result = replace(result, duration_ms=(time.perf_counter() - started) * 1e3)
            self._emit(EventKind.GATE, to_json(result))
            results.append(result)
        return tuple(self._amended(*pair) for pair in zip(GATES, results, strict=True))

    def _amended(self, gate: Gate, result: GateResult) -> GateResult:
        """The result, with what the calls of later gates showed."""
        amended = self.amend(gate.info.id, result)
        if self._backward is not None:
            amended = self._backward.amend(gate.info.id, amended)
        if amended is not result:
            self._emit(EventKind.GATE, to_json(amended))
        return amended

    def amend(self, name: GateId, result: GateResult) -> GateResult:
        """The result of one gate, with what the calls of later gates showed to it here."""
        gate = self._bar.gate(name)
        found = self._in_passing.pop(name, {})
        if not found or result.status is GateStatus.FAIL or name not in self._request.gates:
            return result
        return self._overruled(gate, result, *found.values())

    def _overruled(self, gate: Gate, result: GateResult, *found: Failure) -> GateResult:
        """The result of a gate whose own cases did not show what other calls did."""
        seen = self._result(GateRun(gate, passed=result.passed, failures=list(found)))
        return replace(
            seen, notes=result.notes, evidence=result.evidence, duration_ms=result.duration_ms
        )

    def ask(self, name: GateId) -> GateResult:
        """One gate's result, without a word to anybody; the gates are asked in order."""
        result, self._stop = self._one_gate(self._bar.gate(name), self._stop)
        return result

    def _one_gate(self, gate: Gate, stop: str) -> tuple[GateResult, str]:
        """The gate's result, and why the later gates need not be tried ('' to go on)."""
        first = gate.info.id is GateId.AGREEMENT
        if first and (stop or self._candidate is None):
            return self._unloadable(stop), stop
        if stop:
            return _not_applicable(gate, stop), stop
        if gate.info.id not in self._request.gates:
            return _not_applicable(gate, NOT_ASKED), ""
        reason = gate.applies(self._bench)
        if reason is not None:
            return _not_applicable(gate, reason), ""
        run = self._judge_all(gate)
        return self._result(run), self._stop_reason(run)

    def _unloadable(self, problem: str) -> GateResult:
        """The kernel never got as far as a process: gate 1 says so."""
        case = self._bench.case(GateId.AGREEMENT, "load")
        example = Counterexample(case=case, detail=problem, calls=())
        return GateResult(
            GateId.AGREEMENT,
            GateStatus.FAIL,
            "not loaded",
            reason=problem,
            hard=True,
            failed=1,
            counterexample=example,
        )

    def _stop_reason(self, run: GateRun) -> str:
        """A kernel that passed nothing in gate 1 because it cannot run, or never gave a result, is
        not tried further; nor is one that failed, if nobody wants to know more."""
        if not run.failures:
            return ""
        if self._request.fail_fast:
            return _ended_by(run.gate)
        if run.gate.info.id is not GateId.AGREEMENT or run.passed:
            return ""
        if not run.deaths and ReplyKind.RETURNED in self._ends:
            return ""
        return f"not tried: {run.failures[0][1].detail.splitlines()[0][:160]}"

    def _judge_all(self, gate: Gate) -> GateRun:
        run = GateRun(gate, failures=list(self._in_passing.pop(gate.info.id, {}).values()))
        eager = self._bench.new_eager()
        try:
            for case in gate.cases(self._bench):
                self._check()
                self._judge_one(run, case, eager)
                if run.settled or (run.failures and self._request.fail_fast):
                    break
        except OverdueError as error:
            run.note(GateStatus.INCONCLUSIVE, str(error))
        return run

    def _judge_one(self, run: GateRun, case: CaseRecord, eager: Subject) -> None:
        why = self._bench.cannot_judge(case) or self._reference_fails(run.gate, case, eager)
        if why:
            run.note(GateStatus.NOT_APPLICABLE, why)
            return
        assert self._candidate is not None  # noqa: S101 - _one_gate saw to it
        recorder = self._bar.recorder(self._candidate, case)
        finding = self._judge(case, lambda: self._bar.judge(run.gate, case, recorder))
        finding = settled(self._bench, case, finding)
        self._heed(recorder)
        run.add(case, finding, recorder)
        self._ends.update(recorder.kinds)
        self._keep_breaches(run, case, finding, recorder)
        for other in asked_instead(self._bench, case, finding):
            if run.is_new(other) and not run.settled:
                self._check()
                self._judge_one(run, other, eager)

    def _heed(self, recorder: Recorder) -> None:
        """What a case's calls were leaves its traces in the process that they were made in."""
        self._other_is_clean = self._other_is_clean and not recorder.strayed

    def _keep_breaches(
        self, run: GateRun, case: CaseRecord, finding: Finding, recorder: Recorder
    ) -> None:
        """What the calls of this case showed: to this gate, or to others, whose turn may come."""
        breaches = self._bar.breaches(run.gate, case, recorder)
        own = breaches.pop(run.gate.info.id, None)
        if own is not None and not finding.failed:
            run.failures.append(own)
        for other, found in breaches.items():
            self._in_passing.setdefault(other, {}).setdefault(run.gate.info.id, found)

    def _judge(self, case: CaseRecord, judge: Callable[[], Finding]) -> Finding:
        """A gate's finding; a mistake of the gate's own code is an ERROR of this case alone."""
        try:
            return judge()
        except (InfrastructureError, Cancelled, OverdueError):
            raise
        except Exception as error:  # noqa: BLE001 - our fault, whatever it is, never the kernel's
            context_demand(self._bench.device, error)
            reason = f"the gate broke on {case.label!r}: {type(error).__name__}: {error}"
            return Finding(GateStatus.ERROR, reason)

    def _reference_fails(self, gate: Gate, case: CaseRecord, eager: Subject) -> str | None:
        """The reference is on trial first: what it cannot satisfy, no kernel is blamed for."""
        if not gate.self_check:
            return None
        own = self._judge(case, lambda: gate.judge(self._bench, case, eager))
        if own.failed:
            return f"reference does not satisfy: {own.detail}"
        return own.detail if own.status is GateStatus.NOT_APPLICABLE else None

    # --- one gate's result

    def _result(self, run: GateRun) -> GateResult:
        status = run.status
        example = self._counterexample(run) if run.failures else None
        notes = tuple(CaseNote(s, reason, n) for (s, reason), n in run.open.items())
        reason = example.detail if example else _first_reason(status, notes)
        return GateResult(
            gate=run.gate.info.id,
            status=status,
            summary=summary(status, run.passed, len(run.failures)),
            reason=reason,
            hard=any(finding.hard for _, finding, _ in run.failures),
            passed=run.passed,
            failed=len(run.failures),
            notes=notes,
            counterexample=example,
            evidence=tuple(run.evidence[:MAX_EVIDENCE]),
        )

    def _counterexample(self, run: GateRun) -> Counterexample:
        """The worst failure, minimised, and seen once more in another process."""
        case, finding, calls = run.worst_failure
        if run.deaths:
            return _example(case, finding, calls)
        try:
            small = self._minimise(run.gate, case)
            again, fresh_calls = self._fresh(run.gate, small)
        except OverdueError:
            return _example(case, finding, calls)
        if not again.failed:
            detail = f"{finding.detail} (only after earlier calls in the same process)"
            only_here = _example(case, replace(finding, detail=detail), calls)
            return self._other_example(run, case) or only_here
        example = _example(small, again, fresh_calls)
        return replace(example, minimised_from=dict(case.dims)) if small != case else example

    def _other_example(self, run: GateRun, known: CaseRecord) -> Counterexample | None:
        """Another failure that does show in a process of its own, if there is one."""
        for case in (case for case, _, _ in run.failures if case is not known):
            try:
                self._check()
                finding, calls = self._fresh(run.gate, case)
            except OverdueError:
                return None
            if finding.failed:
                return _example(case, finding, calls)
        return None

    def _minimise(self, gate: Gate, case: CaseRecord) -> CaseRecord:
        def still_fails(trial: CaseRecord) -> bool:
            self._check()
            owner = self._bar.owner(gate, trial)
            if self._reference_fails(owner, trial, self._bench.new_eager()):
                return False
            assert self._candidate is not None  # noqa: S101 - there was a failure
            recorder = self._bar.recorder(self._candidate, trial)
            finding = self._judge(trial, lambda: self._bar.judge(gate, trial, recorder))
            self._heed(recorder)
            return finding.failed

        return smallest(
            self._bench.contract,
            case,
            still_fails,
            max_trials=MINIMISE_TRIALS,
            max_seconds=MINIMISE_S[self._bench.mode],
        )

    def _fresh(self, gate: Gate, case: CaseRecord) -> tuple[Finding, tuple[CallDigest, ...]]:
        """In a process that has only re-created failures; where it does not show there, in one that
        has done nothing yet (on a GPU a process costs more than many calls)."""
        assert self._candidate is not None  # noqa: S101 - there was a failure
        other = self._candidate.other()
        if self._other_is_clean:
            recorder = self._bar.recorder(other, case)
            finding = self._bar.judge(gate, case, recorder)
            if finding.failed:
                return finding, tuple(recorder.calls)
        self._other_is_clean = True
        return self._bar.judge_afresh(gate, case, other)

    # --- the end

    def _measured(self, verdict: Verdict) -> Verdict:
        """With latencies; or, when a timed output is wrong, with gate 12 failed."""
        try:
            return replace(verdict, measurements=self._measurements())
        except WrongOutputError as error:
            found = error.case, error.finding, (error.call,)
        with self._lock.shared(self._cancelled):
            results = tuple(
                self._overruled(gate, result, found) if gate.info.id is GateId.HONEST else result
                for gate, result in zip(GATES, verdict.gates, strict=True)
            )
        return replace(verdict, gates=results)

    def _looked_into(self, deep: Deep) -> tuple[DeepResult, ...]:
        results = []
        with self._lock.shared(self._cancelled):
            for result in deep(self._bench, self._cancelled):
                self._emit(EventKind.DEEP, to_json(result))
                results.append(result)
        return tuple(results)

    def _measurements(self) -> tuple[Measurement, ...]:
        assert self._candidate is not None  # noqa: S101 - run() saw to it
        with self._lock.exclusive(self._cancelled):
            rows = measure(self._bench, self._candidate)
        for row in rows:
            self._emit(EventKind.MEASUREMENT, to_json(row))
        return rows

    def _verdict(
        self,
        loose: LooseResult | None,
        gates: tuple[GateResult, ...],
        measurements: tuple[Measurement, ...],
    ) -> Verdict:
        request = self._request
        return Verdict(
            task=TaskRef(request.task.contract.slug, request.task.digest),
            kernel=KernelRef(
                request.facts.sha256,
                request.choice.entry,
                request.facts.language,
                request.facts.text,
                request.choice.convention,
            ),
            seed=request.seed,
            gates=gates,
            loose=loose,
            environment=self._environment,
            started_at=self._started_at,
            duration_ms=self._elapsed() * 1e3,
            measurements=measurements,
        )


def _example(case: CaseRecord, finding: Finding, calls: tuple[CallDigest, ...]) -> Counterexample:
    return Counterexample(
        case=case,
        detail=finding.detail,
        calls=calls,
        output=finding.output,
        index=finding.index,
        expected=finding.expected,
        got=finding.got,
        slices=finding.slices,
    )


def _ended_by(gate: Gate) -> str:
    """Why later gates are not tried where one failure is enough."""
    return f"not tried: {gate.info.id.value} failed"


def _not_applicable(gate: Gate, reason: str) -> GateResult:
    return GateResult(gate.info.id, GateStatus.NOT_APPLICABLE, "not applicable", reason=reason)


def _first_reason(status: GateStatus, notes: Sequence[CaseNote]) -> str:
    if status is GateStatus.PASS:
        return ""
    return next((note.reason for note in notes if note.status is status), "no case to try")


def build_bench(
    request: Request, mode: DeviceMode, device: torch.device, rule_factor: float = 2.0
) -> Bench:
    """The bench of a request. Raises TaskError when the reference cannot be used: what is wrong
    with a task must not be laid at a kernel's door."""
    bench = Bench(
        contract=request.task.contract,
        reference=load_reference(request.task),
        mode=mode,
        device=device,
        seed=request.seed,
        language=request.facts.language,
        constants=request.facts.tile_sizes,
        rule_factor=rule_factor,
    )
    _try_reference(bench)
    return bench


def build_backward(bench: Bench) -> GradientBench | None:
    """The bench of the task's gradients, if it declares any. Raises TaskError when its reference
    has none."""
    derived = derive_bench(bench)
    if derived is not None:
        _try_reference(derived)
    return derived


def _try_reference(bench: Bench) -> None:
    """One call at small sizes: it returns, and what the contract says."""
    case = bench.case(GateId.AGREEMENT, "the reference itself")
    args = bench.args(case)
    golden, eager = bench.golden(args), bench.eager(args)
    if isinstance(golden, str):
        raise TaskError(f"the reference raises on the task's own inputs: {golden}")
    if len(golden) != len(bench.contract.outputs):
        raise TaskError(
            f"the reference returns {len(golden)} outputs, the contract has "
            f"{len(bench.contract.outputs)}"
        )
    if eager.returned:
        outputs = bench.results(case, args, eager)
        if isinstance(outputs, Finding):
            raise TaskError(f"the reference does not fit the contract: {outputs.detail}")
