"""Who may write a run: leases with a fencing token, taken, kept, given back, lost.

``attempt`` is the fencing token. Every write of a node is conditional on "running, this attempt";
once the run is leased again, cancelled or ended, an older attempt changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from kernelhub.core import events
from kernelhub.core.choices import ErrorKind, NodeStatus, RunStatus
from kernelhub.core.models import Event, Node, Run
from kernelhub.core.services.errors import EventGapError, FencedError, TooManyEventsError
from kernelhub.core.services.transition import run_transition
from kernelhub.core.text import storable

LEASE_S: Final = 30
HEARTBEAT_S: Final = 2
"""Also how long a cancel takes to reach the device."""
EVENTS_PER_RUN: Final = 20_000
REAP_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to judge one run until ``lease_s`` after the last heartbeat."""

    run: Run
    attempt: int
    lease_s: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many events of this attempt are stored, and whether the node should stop."""

    received: int
    cancelled: bool


def _held(attempt: int) -> Q:
    return Q(status=RunStatus.RUNNING, attempt=attempt)


def _claimable(node: Node) -> Q:
    return Q(status=RunStatus.QUEUED, requested_queue__in=["", node.queue])


@transaction.atomic
def run_claim(*, node: Node, run_id: UUID | None = None, lease_s: int = LEASE_S) -> Lease | None:
    """Leases the first waiting run that this node can judge, or that very run; None without one.

    1. A draining or offline node gets nothing.
    2. The candidate row is locked; rows that another claimer holds are passed over.
    3. A conditional UPDATE takes it, raising the attempt, which fences off earlier ones.
    """
    if node.status != NodeStatus.ONLINE:
        return None
    waiting = Run.objects.filter(_claimable(node)).order_by("-priority", "created_at")
    if run_id is not None:
        waiting = waiting.filter(pk=run_id)
    candidate = waiting.select_for_update(skip_locked=True).first()
    if candidate is None:
        return None
    attempt = candidate.attempt + 1
    leased = events.Leased(node.name, attempt, lease_s)
    run = run_transition(candidate.pk, _claimable(node), _lease_fields(node, lease_s), [leased])
    return Lease(run, attempt, lease_s) if run else None


def _lease_fields(node: Node, lease_s: int) -> dict[str, object]:
    return {
        "status": RunStatus.RUNNING,
        "node": node,
        "attempt": F("attempt") + 1,
        "lease_until": Now() + timedelta(seconds=lease_s),
        "heartbeat_at": Now(),
        "started_at": Now(),
        "received": 0,
    }


def run_fence(*, run_id: UUID, node: Node, attempt: int) -> Run:
    """The run, if this attempt at it was leased to this node; else FencedError.

    The run may have ended since: each write is conditional by itself. A node never changes for a
    given attempt, so what is true here stays true.
    """
    runs = Run.objects.select_related("task").filter(pk=run_id, node=node, attempt=attempt)
    run = runs.first()
    if run is None:
        raise FencedError("This run is not leased to this node under this attempt.")
    return run


def run_fault(*, run_id: UUID, node: Node, attempt: int, kind: ErrorKind, message: str) -> Run:
    """run_error as its node reports it; the same report of the same node again changes nothing.

    A report is known by its stored event, because the run may be leased elsewhere by then.
    """
    told = _loss_reports(run_id, attempt, kind, message).filter(payload__node=node.name)
    if not told.exists():
        run_fence(run_id=run_id, node=node, attempt=attempt)
    return run_error(run_id=run_id, attempt=attempt, kind=kind, message=message)


def _loss_reports(
    run_id: UUID, attempt: int, kind: ErrorKind, message: str
) -> models.QuerySet[Event]:
    return Event.objects.filter(
        run_id=run_id,
        attempt=attempt,
        kind=events.EventKind.ATTEMPT_LOST.value,
        payload__error_kind=kind.value,
        payload__reason=storable(message),
    )


def run_heartbeat(*, run_id: UUID, attempt: int, lease_s: int = LEASE_S) -> Receipt:
    """Extends the lease. ``cancelled`` tells the node to stop; FencedError that it lost the run."""
    held = Run.objects.filter(_held(attempt), pk=run_id)
    until = Now() + timedelta(seconds=lease_s)
    if held.update(lease_until=until, heartbeat_at=Now()) == 1:
        return Receipt(
            received=held.values_list("received", flat=True).first() or 0, cancelled=False
        )
    return _receipt_of_ended(run_id, attempt)


def _receipt_of_ended(run_id: UUID, attempt: int) -> Receipt:
    run = Run.objects.filter(pk=run_id, attempt=attempt, status=RunStatus.CANCELLED).first()
    if run is None:
        raise FencedError("This attempt no longer holds the run.")
    return Receipt(received=run.received, cancelled=True)


@transaction.atomic
def run_event_append(
    *, run_id: UUID, attempt: int, first: int, happened: Sequence[events.Progress]
) -> Receipt:
    """Stores a batch of an attempt's events, numbered by the node from ``first`` (0 at start).

    Events that are already stored are skipped, so a batch that is posted twice is stored once.
    EventGapError when events in between are missing, TooManyEventsError beyond EVENTS_PER_RUN,
    FencedError when the attempt no longer holds the run.
    """
    run = Run.objects.select_for_update().filter(_held(attempt), pk=run_id).first()
    if run is None:
        return _receipt_of_ended(run_id, attempt)
    if first > run.received:
        raise EventGapError(run.received)
    fresh = list(happened[run.received - first :])
    if run.last_seq + len(fresh) > EVENTS_PER_RUN:
        raise TooManyEventsError(f"A run holds at most {EVENTS_PER_RUN} events.")
    if fresh:
        run_transition(run_id, _held(attempt), {"received": F("received") + len(fresh)}, fresh)
    return Receipt(received=run.received + len(fresh), cancelled=False)


def run_release(*, run_id: UUID, attempt: int, reason: str) -> bool:
    """Gives a lease back, so that another node may take the run at once; no attempt is lost.

    False when this attempt did not hold the run any more, which is just as well.
    """
    requeued = events.Requeued(reason, attempts_left=_attempts_left(run_id))
    return run_transition(run_id, _held(attempt), _queued_fields(), [requeued]) is not None


def _attempts_left(run_id: UUID) -> int:
    left = Run.objects.filter(pk=run_id).values_list(F("max_attempts") - F("lost_attempts"))
    return left[0][0] if left else 0


def _queued_fields() -> dict[str, object]:
    return {
        "status": RunStatus.QUEUED,
        "node": None,
        "lease_until": None,
        "heartbeat_at": None,
        "started_at": None,
        "dispatched_at": None,
    }


def _errored_fields(kind: ErrorKind, message: str) -> dict[str, object]:
    return {
        "status": RunStatus.ERRORED,
        "error_kind": kind,
        "error_message": storable(message),
        "finished_at": Now(),
        "lease_until": None,
        "heartbeat_at": None,
    }


def run_error(*, run_id: UUID, attempt: int, kind: ErrorKind, message: str) -> Run:
    """Ends an attempt that our machinery broke; the kernel has no part in it.

    An infrastructure error queues the run again while attempts are left; a task that cannot be
    judged ends it. The same report posted twice counts once. FencedError for a stale attempt.
    """
    run = Run.objects.select_related("node").filter(_held(attempt), pk=run_id).first()
    ended = _attempt_lose(run, Q(), kind, message) if run else None
    if ended is None:
        return _attempt_reported(run_id, attempt, kind, message)
    return ended


def _attempt_reported(run_id: UUID, attempt: int, kind: ErrorKind, message: str) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None or not _loss_reports(run_id, attempt, kind, message).exists():
        raise FencedError("This attempt no longer holds the run.")
    return run


def run_requeue_expired() -> list[Run]:
    """The reaper: every run whose node fell silent is queued again, or errored as lost."""
    expired = Q(lease_until__lt=Now())
    silent = Run.objects.filter(expired, status=RunStatus.RUNNING).select_related("node")
    reason = f"its node sent no heartbeat for {LEASE_S} s"
    reaped = (_attempt_lose(run, expired, ErrorKind.LOST, reason) for run in silent[:REAP_BATCH])
    return [run for run in reaped if run is not None]


def node_runs_lose(*, node: Node, reason: str) -> list[Run]:
    """Takes back what the node had leased: its agent started afresh and knows of none of it."""
    held = Run.objects.filter(status=RunStatus.RUNNING, node=node).select_related("node")
    lost = (_attempt_lose(run, Q(node=node), ErrorKind.LOST, reason) for run in held)
    return [run for run in lost if run is not None]


def node_runs_release(*, node: Node, reason: str) -> list[UUID]:
    """Queues again what the node has leased, without the loss of an attempt."""
    held = Run.objects.filter(status=RunStatus.RUNNING, node=node).values_list("pk", "attempt")
    return [pk for pk, attempt in held if run_release(run_id=pk, attempt=attempt, reason=reason)]


def _attempt_lose(run: Run, where: Q, kind: ErrorKind, reason: str) -> Run | None:
    """Ends the attempt that ``run`` carries: back to the queue, or errored without a try left."""
    node = run.node.name if run.node else ""
    lost = events.AttemptLost(node, run.attempt, kind.value, reason)
    left = run.max_attempts - run.lost_attempts - 1
    end: events.RunEvent
    if kind is ErrorKind.TASK or left <= 0:
        message = reason if kind is ErrorKind.TASK else f"attempt {run.attempt}: {reason}"
        fields, end = _errored_fields(kind, message), events.Errored(kind.value, message)
    else:
        fields, end = _queued_fields(), events.Requeued(reason, left)
    fields["lost_attempts"] = F("lost_attempts") + 1
    still = _held(run.attempt) & Q(lost_attempts=run.lost_attempts) & where
    return run_transition(run.pk, still, fields, [lost, end])
