"""From the database to the broker: a message per waiting run, which carries its id only.

A message wakes a node; it is no record. When the broker is down the row stays without
``dispatched_at`` and the clock sends it later; nodes that poll need no message at all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from celery import current_app
from django.db.models import Q
from django.db.models.functions import Now
from kombu import Connection

from gpu_runner.protocol import JOB_NAME
from kernelhub.core.choices import NodeStatus, RunStatus
from kernelhub.core.events import EventKind, RunChange
from kernelhub.core.models import Node, Run

log = logging.getLogger(__name__)

WAKING: Final = frozenset({EventKind.QUEUED, EventKind.REQUEUED})
BATCH: Final = 500
AGAIN_S: Final = 600
"""A message may get lost with the broker: a run that still waits after this long gets another."""
CONNECT_S: Final = 2.0
BROKER_REST_S: Final = 5.0
"""After a failure the broker is left alone this long, so that no request waits for it twice."""

_broken_until = 0.0


def on_run_changed(sender: object, change: RunChange, **_: Any) -> None:
    """Wakes a node as soon as a run waits."""
    if change.kinds & WAKING:
        dispatch(((change.run_id, change.queue),))


def dispatch_waiting() -> int:
    """Sends a message for each waiting run without one; how many were sent."""
    undelivered = Q(dispatched_at=None) | Q(dispatched_at__lt=Now() - timedelta(seconds=AGAIN_S))
    waiting = Run.objects.filter(undelivered, status=RunStatus.QUEUED)
    return dispatch(
        waiting.order_by("-priority", "created_at").values_list("id", "requested_queue")[:BATCH]
    )


def dispatch(runs: Iterable[tuple[UUID, str]]) -> int:
    """One message a run; stops at the first failure, and never raises for one of the broker."""
    global _broken_until
    if time.monotonic() < _broken_until:
        return 0
    everywhere = _queues_online()
    sent: list[UUID] = []
    try:
        with _connection() as broker:
            for run_id, queue in runs:
                _send(broker, run_id, [queue] if queue else everywhere)
                sent.append(run_id)
    except Exception as error:  # noqa: BLE001 - transports raise errors of their own kinds
        log.warning("broker unavailable, runs wait for a poll: %s", error)
        _broken_until = time.monotonic() + BROKER_REST_S
    Run.objects.filter(pk__in=sent, status=RunStatus.QUEUED).update(dispatched_at=Now())
    return len(sent)


def _queues_online() -> list[str]:
    online = Node.objects.filter(status=NodeStatus.ONLINE).exclude(queue="")
    return sorted(set(online.values_list("queue", flat=True)))


def _connection() -> Connection:
    """One that gives up at once: a request must not wait until a dead broker comes back."""
    at_once = {"max_retries": 0, "socket_connect_timeout": CONNECT_S}
    return current_app.connection_for_write(transport_options=at_once)


def _send(broker: Connection, run_id: UUID, queues: Iterable[str]) -> None:
    for queue in queues:
        current_app.send_task(
            JOB_NAME, args=[str(run_id)], queue=queue, retry=False, connection=broker
        )
