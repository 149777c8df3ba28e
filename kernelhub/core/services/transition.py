"""The one way in which a run changes: a conditional UPDATE, its events, a hint after commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from kernelhub.core import events
from kernelhub.core.models import Event, Run
from kernelhub.core.text import storable


@transaction.atomic
def run_transition(
    run_id: UUID, where: Q, changes: dict[str, Any], happened: Sequence[events.RunEvent]
) -> Run | None:
    """Applies ``changes`` where the run still matches ``where``; None when it no longer does.

    1. One UPDATE takes the change and the next event numbers together, and locks the row.
    2. The events are stored under those numbers.
    3. After commit the change is published.
    """
    matching = Run.objects.filter(where, pk=run_id)
    if matching.update(last_seq=F("last_seq") + len(happened), **changes) != 1:
        return None
    run = Run.objects.select_related("task__suite", "kernel", "node").get(pk=run_id)
    Event.objects.bulk_create(event_rows(run, happened))
    transaction.on_commit(partial(events.publish, change_of(run, happened)))
    return run


def event_rows(run: Run, happened: Sequence[events.RunEvent]) -> list[Event]:
    """The events as rows, the last of which has the run's ``last_seq``."""
    first = run.last_seq - len(happened) + 1
    return [
        Event(
            run=run,
            seq=first + offset,
            attempt=run.attempt,
            kind=event.kind.value,
            payload=storable(events.payload(event)),
        )
        for offset, event in enumerate(happened)
    ]


def change_of(run: Run, happened: Iterable[events.RunEvent]) -> events.RunChange:
    kinds = frozenset(event.kind for event in happened)
    return events.RunChange(run.pk, run.campaign_id, run.last_seq, kinds, run.requested_queue)
