"""Starting and cancelling runs, as people and programs ask for it."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from kernelhub.core import events
from kernelhub.core.choices import ACTIVE, RunStatus
from kernelhub.core.models import Campaign, Event, Kernel, Run, Task
from kernelhub.core.services.errors import IdempotencyConflictError, ServiceError
from kernelhub.core.services.transition import change_of, event_rows, run_transition

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SEED_BITS: Final = 48
"""A seed stays exact where JavaScript shows it."""

MAX_ATTEMPTS: Final = 3


def seed_draw() -> int:
    """An unpredictable seed: a kernel must not know its inputs beforehand."""
    return secrets.randbits(SEED_BITS)


def run_enqueue(
    *,
    task: Task,
    kernel: Kernel,
    queue: str = "",
    seed: int | None = None,
    campaign: Campaign | None = None,
    created_by: User | None = None,
    idempotency_key: str | None = None,
    priority: int = 0,
    max_attempts: int = MAX_ATTEMPTS,
) -> Run:
    """A queued run of the kernel, on any node or, with ``queue``, on nodes of that capability.

    A repeated ``idempotency_key`` of the same user gives the first run back; with another kernel
    it raises IdempotencyConflictError. ServiceError when the kernel belongs to another task.
    """
    if kernel.task_id != task.pk:
        raise ServiceError("This kernel was registered for another task, or another revision.")
    run = Run(
        task=task,
        kernel=kernel,
        campaign=campaign,
        requested_queue=queue,
        seed=seed_draw() if seed is None else seed,
        created_by=created_by,
        idempotency_key=idempotency_key or None,
        priority=priority,
        max_attempts=max_attempts,
        last_seq=1,
    )
    try:
        return _run_store(run)
    except IntegrityError:
        if not idempotency_key:
            raise
        return _run_of_key(run)


@transaction.atomic
def _run_store(run: Run) -> Run:
    queued = [events.Queued(run.requested_queue)]
    run.save(force_insert=True)
    Event.objects.bulk_create(event_rows(run, queued))
    transaction.on_commit(partial(events.publish, change_of(run, queued)))
    run.refresh_from_db(fields=["created_at"])
    return run


def _run_of_key(run: Run) -> Run:
    first = Run.objects.filter(
        created_by=run.created_by, idempotency_key=run.idempotency_key
    ).first()
    if first is None:
        raise ServiceError("The run could not be stored; try again.")
    if first.kernel_id != run.kernel_id or first.requested_queue != run.requested_queue:
        raise IdempotencyConflictError("This idempotency key was used for another run.")
    return first


def run_cancel(*, run: Run, by: str = "") -> bool:
    """Cancels a run that has not ended, in the database at once; False when it had ended.

    A node that still judges it learns so from its next heartbeat and kills the verifier; what it
    posts in between is refused.
    """
    changes = {
        "status": RunStatus.CANCELLED,
        "cancel_requested_at": Now(),
        "finished_at": Now(),
        "lease_until": None,
        "heartbeat_at": None,
    }
    happened: list[events.RunEvent] = [events.CancelRequested(by), events.Cancelled()]
    return run_transition(run.pk, Q(status__in=ACTIVE), changes, happened) is not None
