"""Launching many runs together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction

from kernelhub.core import events
from kernelhub.core.models import Campaign, Event, Kernel, Run
from kernelhub.core.services.errors import ServiceError
from kernelhub.core.services.run import MAX_ATTEMPTS, seed_draw
from kernelhub.core.services.transition import change_of, event_rows

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CAMPAIGN_PRIORITY: Final = -10
"""Below 0, that of a single submission: somebody may be waiting for that one."""


@transaction.atomic
def campaign_launch(
    *,
    slug: str,
    title: str,
    kernels: Iterable[Kernel],
    queues: Iterable[str] = ("",),
    seed: int | None = None,
    created_by: User | None = None,
    note: str = "",
) -> tuple[Campaign, list[Run]]:
    """Queues one run of each kernel on each queue ('' is any node), under the campaign ``slug``.

    An existing campaign of that slug gets further runs. ServiceError without any kernel.
    """
    campaign, _ = Campaign.objects.get_or_create(
        slug=slug, defaults={"title": title, "created_by": created_by, "note": note}
    )
    wanted = list(queues)
    runs = [
        _run_row(campaign, kernel, queue, seed, created_by)
        for kernel in kernels
        for queue in wanted
    ]
    if not runs:
        raise ServiceError("A campaign needs at least one kernel and one queue.")
    _runs_store(runs)
    return campaign, runs


def _run_row(
    campaign: Campaign, kernel: Kernel, queue: str, seed: int | None, created_by: User | None
) -> Run:
    return Run(
        task_id=kernel.task_id,
        kernel=kernel,
        campaign=campaign,
        requested_queue=queue,
        seed=seed_draw() if seed is None else seed,
        created_by=created_by,
        priority=CAMPAIGN_PRIORITY,
        max_attempts=MAX_ATTEMPTS,
        last_seq=1,
    )


def _runs_store(runs: list[Run]) -> None:
    """Runs and first events in two statements, then one hint for all of them."""
    queued = [[events.Queued(run.requested_queue)] for run in runs]
    Run.objects.bulk_create(runs, batch_size=1000)
    rows = (event_rows(run, happened)[0] for run, happened in zip(runs, queued, strict=True))
    Event.objects.bulk_create(rows, batch_size=1000)
    transaction.on_commit(partial(events.publish, change_of(runs[-1], queued[-1])))
