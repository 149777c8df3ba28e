"""Launches the demo campaign and shows in the terminal what becomes of it.

A process of its own, so that the supervisor, which runs for ever, need not load Django.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Final

import django

from kernelhub.launch.terminal import ProgressBar, columns, first_that_fits, say, shortened, table

if TYPE_CHECKING:
    from uuid import UUID

    from kernelhub.core.models import Run
    from kernelhub.core.selectors.overview import CampaignProgress

POLL_S: Final = 0.5
HEAD: Final = ("task", "kernel", "expected", "loose test", "verdict", "s", "failed gates")
BRIEF_HEAD: Final = ("task", "kernel", "expected", "loose", "verdict", "s", "failed gates")
TASK: Final = HEAD.index("task")
SECONDS: Final = HEAD.index("s")
ERROR_CHARS: Final = 60


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")
    django.setup()
    campaign_id = launch()
    progress = watch(campaign_id)
    say(summary(progress))
    print(result_table(campaign_id), flush=True)  # noqa: T201
    return 0


def launch() -> UUID:
    """Queues what the campaign lacks; a second launch of the same corpus queues nothing."""
    from django.core.management import call_command

    from gpu_runner.services import DEMO_SLUG
    from kernelhub import celery  # noqa: F401 - the application that sends messages
    from kernelhub.core.models import Campaign

    with redirect_stdout(sys.stderr):
        call_command("launch_demo")
    return Campaign.objects.get(slug=DEMO_SLUG).pk


def watch(campaign_id: UUID) -> CampaignProgress:
    """Draws the bar until every run of the campaign has ended."""
    from kernelhub.core.selectors.overview import campaign_progress

    bar = ProgressBar()
    while True:
        progress = campaign_progress(campaign_id)
        runs = progress.runs
        bar.show(done=runs.ended, total=runs.total, note=_note(progress))
        if progress.done:
            bar.close()
            return progress
        time.sleep(POLL_S)


def _note(progress: CampaignProgress) -> str:
    """The counts; before anything is judged, why nothing is."""
    from kernelhub.core.choices import NodeStatus
    from kernelhub.core.models import Node

    if progress.runs.ended or Node.objects.filter(status=NodeStatus.ONLINE).exists():
        return summary(progress)
    return "waiting for a node agent, which loads the verifier (its log: var/log/node-*.log)"


def summary(progress: CampaignProgress) -> str:
    verdicts, runs = progress.verdicts, progress.runs
    words = [
        f"{verdicts.accepted} accepted",
        f"{verdicts.rejected} rejected",
        f"{verdicts.undecided} undecided",
        f"{verdicts.illusions} illusions",
        *([f"{runs.errored} errored"] if runs.errored else []),
        *([f"{runs.cancelled} cancelled"] if runs.cancelled else []),
    ]
    return ", ".join(words)


def result_table(campaign_id: UUID) -> str:
    """One line for each run of the campaign, as wide as the terminal at most."""
    return first_that_fits(renditions(_judged(campaign_id)), columns())


def _judged(campaign_id: UUID) -> list[Run]:
    """The campaign's runs with what the table shows, in the order of tasks and labels."""
    from django.db.models import Prefetch

    from kernelhub.core.models import GateResult, Run
    from verifier.records import GateStatus

    failed = GateResult.objects.filter(status=GateStatus.FAIL.value).order_by("number")
    runs = (
        Run.objects.filter(campaign_id=campaign_id)
        .select_related("task__suite", "kernel", "verdict")
        .defer("kernel__source", "verdict__document", "verdict__environment")
        .prefetch_related(Prefetch("verdict__gates", failed, to_attr="failed_gates"))
    )
    return list(runs.order_by("task__suite__order", "task__slug", "kernel__group", "kernel__label"))


def renditions(runs: Sequence[Run]) -> Iterator[str]:
    """The table in full, then briefer: first words give way, then the task, which most labels
    begin with, then the seconds."""
    yield table(HEAD, [_row(run) for run in runs])
    rows = [BRIEF_HEAD, *(_brief_row(run) for run in runs)]
    for left_out in ((), (TASK,), (TASK, SECONDS)):
        head, *others = [_without(row, left_out) for row in rows]
        yield table(head, others)


def _without(row: Sequence[str], places: Sequence[int]) -> list[str]:
    return [cell for place, cell in enumerate(row) if place not in places]


def _row(run: Run) -> list[str]:
    start = [run.task.path, run.kernel.label, run.kernel.expectation]
    verdict = getattr(run, "verdict", None)
    if verdict is None:
        return [*start, "", run.status, "", _error(run)]
    return [
        *start,
        {True: "accepts", False: "rejects", None: "not measured"}[verdict.loose_accepted],
        f"{verdict.outcome}{' (illusion)' if verdict.illusion else ''}",
        f"{verdict.duration_ms / 1000:.1f}",
        " ".join(gate.gate for gate in verdict.failed_gates),
    ]


def _brief_row(run: Run) -> list[str]:
    """The same in fewer words: every illusion is rejected, every gate's name begins with G."""
    _, label, expected, loose, outcome, seconds, gates = _row(run)
    verdict = getattr(run, "verdict", None)
    if verdict is None:
        return [run.task.slug, label, expected, loose, outcome, seconds, run.error_kind]
    loose = loose if verdict.loose_accepted is not None else "-"
    outcome = "illusion" if verdict.illusion else outcome
    return [run.task.slug, label, expected, loose, outcome, seconds, gates.replace("G", "")]


def _error(run: Run) -> str:
    return shortened(" ".join(run.error_message.split()), ERROR_CHARS)


if __name__ == "__main__":
    sys.exit(main())
