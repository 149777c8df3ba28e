"""Launches the demo campaign and shows in the terminal what becomes of it.

A process of its own, so that the supervisor, which runs for ever, need not load Django.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Final

import django

from kernelhub.launch.terminal import ProgressBar, say, table

if TYPE_CHECKING:
    from uuid import UUID

    from kernelhub.core.models import Run
    from kernelhub.core.selectors.overview import CampaignProgress

POLL_S: Final = 0.5
HEAD: Final = ("task", "kernel", "expected", "loose test", "verdict", "failed gates", "s")


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
    """One line for each run of the campaign, in the order of tasks and labels."""
    from django.db.models import Prefetch

    from kernelhub.core.models import GateResult, Run
    from verifier.records import GateStatus

    failed = GateResult.objects.filter(status=GateStatus.FAIL.value).order_by("number")
    runs = (
        Run.objects.filter(campaign_id=campaign_id)
        .select_related("task__suite", "kernel", "verdict")
        .defer("kernel__source", "verdict__document", "verdict__environment")
        .prefetch_related(Prefetch("verdict__gates", failed, to_attr="failed_gates"))
        .order_by("task__suite__order", "task__slug", "kernel__group", "kernel__label")
    )
    return table(HEAD, [_row(run) for run in runs])


def _row(run: Run) -> tuple[str, ...]:
    verdict = getattr(run, "verdict", None)
    start = (run.task.path, run.kernel.label, run.kernel.expectation)
    if verdict is None:
        return (*start, "", run.status, run.error_message[:60], "")
    return (
        *start,
        {True: "accepts", False: "rejects", None: "not measured"}[verdict.loose_accepted],
        f"{verdict.outcome}{' (illusion)' if verdict.illusion else ''}",
        " ".join(gate.gate for gate in verdict.failed_gates),
        f"{verdict.duration_ms / 1000:.1f}",
    )


if __name__ == "__main__":
    sys.exit(main())
