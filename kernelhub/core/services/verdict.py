"""Writing a verdict: once, whole, and only about the kernel that the run was for."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from kernelhub.core import events
from kernelhub.core.choices import RunStatus, VerdictSource
from kernelhub.core.models import GateResult, Measurement, Run, Verdict
from kernelhub.core.services.errors import BrokenVerdictError, FencedError, VerdictMismatchError
from kernelhub.core.services.transition import run_transition
from kernelhub.core.text import storable
from verifier import records

_MEASUREMENT_COLUMNS: Final = (
    "workload",
    "subject",
    "latency_ms",
    "low_ms",
    "high_ms",
    "n",
    "speedup",
    "note",
)


def verdict_breakage(verdict: records.Verdict) -> str:
    """Which gates broke and why; '' for a verdict in which none did.

    A gate in ERROR is our mistake, whatever the other gates say, so the attempt is to be reported
    as an infrastructure error: it is tried again, and in the end says nothing about the kernel.
    """
    broken = records.GateStatus.ERROR
    reasons = [f"{one.gate.value}: {one.reason}" for one in verdict.gates if one.status is broken]
    return "the verifier broke at " + "; ".join(reasons) if reasons else ""


def run_finish(*, run_id: UUID, attempt: int, verdict: records.Verdict) -> Verdict:
    """Ends the run with its verdict; the same verdict posted again changes nothing.

    VerdictMismatchError when it judges another task, kernel or seed; BrokenVerdictError when a
    gate broke; FencedError when the attempt no longer holds the run, or when another verdict
    stands there.
    """
    if breakage := verdict_breakage(verdict):
        raise BrokenVerdictError(breakage)
    run = Run.objects.select_related("task", "kernel").filter(pk=run_id, attempt=attempt).first()
    if run is None:
        raise FencedError("This attempt no longer holds the run.")
    _check_subject(run, verdict)
    stored = _verdict_store(run, verdict)
    return stored if stored is not None else _verdict_standing(run, verdict)


def _check_subject(run: Run, verdict: records.Verdict) -> None:
    pairs = {
        "task digest": (verdict.task.digest, run.task.digest),
        "kernel sha256": (verdict.kernel.sha256, run.kernel.sha256),
        "entry point": (verdict.kernel.entry, run.kernel.entry),
        "seed": (verdict.seed, run.seed),
    }
    wrong = [f"{name} {got}, not {due}" for name, (got, due) in pairs.items() if got != due]
    if wrong:
        raise VerdictMismatchError("The verdict is not about this run: " + "; ".join(wrong))


@transaction.atomic
def _verdict_store(run: Run, verdict: records.Verdict) -> Verdict | None:
    happened: list[events.RunEvent] = [_reached(verdict), events.Finished(verdict.outcome.value)]
    changes = {
        "status": RunStatus.FINISHED,
        "finished_at": Now(),
        "lease_until": None,
        "heartbeat_at": None,
    }
    held = Q(status=RunStatus.RUNNING, attempt=run.attempt)
    if run_transition(run.pk, held, changes, happened) is None:
        return None
    row = _verdict_row(run, verdict)
    row.save(force_insert=True)
    GateResult.objects.bulk_create([_gate_row(row, one) for one in verdict.gates])
    Measurement.objects.bulk_create([_measurement_row(row, one) for one in verdict.measurements])
    return row


def _verdict_standing(run: Run, verdict: records.Verdict) -> Verdict:
    """The stored verdict, if it is this very one."""
    standing = Verdict.objects.filter(run=run).first()
    if standing is None or standing.document != storable(records.to_json(verdict)):
        raise FencedError("This attempt no longer holds the run.")
    return standing


def _reached(verdict: records.Verdict) -> events.VerdictReached:
    fail = records.GateStatus.FAIL
    return events.VerdictReached(
        outcome=verdict.outcome.value,
        illusion=verdict.illusion,
        hard=verdict.hard,
        loose_accepted=verdict.loose.accepted if verdict.loose else None,
        failed_gates=tuple(one.gate.value for one in verdict.gates if one.status is fail),
        duration_ms=verdict.duration_ms,
    )


def _verdict_row(run: Run, verdict: records.Verdict) -> Verdict:
    return Verdict(
        run=run,
        source=VerdictSource.FLEET,
        outcome=verdict.outcome.value,
        illusion=verdict.illusion,
        hard=verdict.hard,
        loose_accepted=verdict.loose.accepted if verdict.loose else None,
        gate_set=verdict.gate_set,
        verifier_version=verdict.verifier_version,
        environment=storable(records.to_json(verdict.environment)),
        document=storable(records.to_json(verdict)),
        duration_ms=verdict.duration_ms,
    )


def _gate_row(verdict: Verdict, result: records.GateResult) -> GateResult:
    document = storable(records.to_json(result))
    return GateResult(
        verdict=verdict,
        gate=result.gate.value,
        number=result.gate.number,
        status=result.status.value,
        hard=result.hard,
        summary=document["summary"],
        reason=document["reason"],
        passed=result.passed,
        failed=result.failed,
        duration_ms=result.duration_ms,
        counterexample=document["counterexample"],
        notes=document["notes"],
    )


def _measurement_row(verdict: Verdict, measurement: records.Measurement) -> Measurement:
    """The columns that pages sort and filter by; the verdict's document holds the rest."""
    document = storable(records.to_json(measurement))
    return Measurement(verdict=verdict, **{name: document[name] for name in _MEASUREMENT_COLUMNS})
