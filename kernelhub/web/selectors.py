"""Reads that only pages need, beside core's. Each states its number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from kernelhub.core.choices import ACTIVE, RunStatus
from kernelhub.core.models import Campaign, Event, GateResult, Kernel, Run, Suite, Task, Verdict
from kernelhub.core.selectors import (
    CampaignProgress,
    LooseVsGates,
    RunCounts,
    RunFilters,
    VerdictCounts,
    campaign_progress,
    latest_verdicts,
    run_counts,
    run_list,
    runs_for_lists,
    verdict_counts,
)
from verifier.records import GateStatus, Outcome

LOG_EVENTS_SHOWN = 200
TIMELINE_EVENTS_SHOWN = 200
CAMPAIGNS_SHOWN = 3
RECENT_EVENTS = 600


class Origin(StrEnum):
    """Where kernels come from. A rate over the one says nothing about the other, so no count
    mixes the two: a corpus is made to hold wrong kernels, submitted ones are what people send."""

    CORPUS = "corpus"
    SUBMITTED = "submitted"


def is_corpus(kernel: Kernel) -> bool:
    """Whether a suite's corpus brought the kernel along; submitting it again changes nothing."""
    return bool(kernel.group or kernel.expectation)


SUBMITTED: Final = Q(group="", expectation="")


def kernels_from(origin: Origin) -> QuerySet[Kernel]:
    return Kernel.objects.filter(SUBMITTED if origin is Origin.SUBMITTED else ~SUBMITTED)


def _counted(kernels: QuerySet[Kernel] | None = None) -> QuerySet[Verdict]:
    """The verdicts that count: the latest of each kernel."""
    latest = latest_verdicts(Kernel.objects.all() if kernels is None else kernels).values("pk")
    return Verdict.objects.filter(pk__in=latest)


def loose_vs_gates(origin: Origin) -> LooseVsGates:
    """The loose test against the gates over the kernels of one origin; one query."""
    counts: dict[str, int] = defaultdict(int)
    verdicts = _counted(kernels_from(origin))
    rows = verdicts.values("outcome", "loose_accepted").annotate(n=Count("pk")).order_by()
    for row in rows:
        counts[_cell(row["outcome"], row["loose_accepted"])] += row["n"]
    return LooseVsGates(**counts)


def _cell(outcome: str, loose: bool | None) -> str:
    if outcome == Outcome.UNDECIDED:
        return "undecided"
    if loose is None:
        return "unmeasured"
    if outcome == Outcome.ACCEPTED:
        return "both_accept" if loose else "loose_rejects_gates_accept"
    return "illusions" if loose else "both_reject"


@dataclass(frozen=True, slots=True)
class GateTotals:
    """How one gate ended over all kernels; ``illusions``: failures that the loose test let by."""

    passed: int = 0
    failed: int = 0
    not_applicable: int = 0
    open: int = 0
    illusions: int = 0


def gate_totals(origin: Origin | None = None) -> dict[str, GateTotals]:
    """Each gate's findings over the latest verdict of every kernel, or of those of one origin;
    one query."""
    status = GateStatus
    counted = _counted(kernels_from(origin) if origin else None)
    rows = (
        GateResult.objects.filter(verdict__in=counted.values("pk"))
        .values("gate")
        .annotate(
            passed_n=_status_count(status.PASS),
            failed_n=_status_count(status.FAIL),
            absent_n=_status_count(status.NOT_APPLICABLE),
            open_n=_status_count(status.INCONCLUSIVE, status.ERROR),
            illusion_n=Count("pk", filter=Q(status=status.FAIL, verdict__illusion=True)),
        )
        .order_by()
    )
    return {
        row["gate"]: GateTotals(
            row["passed_n"], row["failed_n"], row["absent_n"], row["open_n"], row["illusion_n"]
        )
        for row in rows
    }


def _status_count(*statuses: GateStatus) -> Count:
    return Count("pk", filter=Q(status__in=[one.value for one in statuses]))


def campaigns_shown() -> list[CampaignProgress]:
    """The campaigns that are under way or were launched within a day, newest first.

    Three queries for each of at most three campaigns.
    """
    recent = Q(created_at__gt=Now() - timedelta(days=1)) | Q(
        pk__in=Run.objects.filter(status__in=ACTIVE, campaign__isnull=False).values("campaign")
    )
    ids = Campaign.objects.filter(recent).order_by("-created_at").values_list("pk", flat=True)
    return [campaign_progress(pk) for pk in ids[:CAMPAIGNS_SHOWN]]


@dataclass(frozen=True, slots=True)
class SuiteTotals:
    """A suite and its counts; a kernel counts once."""

    suite: Suite
    tasks: int
    judged: int = 0
    accepted: int = 0
    rejected: int = 0
    illusions: int = 0


def suite_totals() -> list[SuiteTotals]:
    """Every suite in its order; two queries."""
    by_suite = _verdicts_by_suite()
    current = Count("tasks", filter=Q(tasks__is_current=True))
    suites = Suite.objects.annotate(current=current).order_by("order", "slug")
    return [SuiteTotals(suite, suite.current, **by_suite.get(suite.pk, {})) for suite in suites]


def _verdicts_by_suite() -> dict[UUID, dict[str, int]]:
    names = ("judged", "accepted", "rejected", "illusions")
    rows = (
        _counted()
        .filter(run__task__is_current=True)
        .values("run__task__suite")
        .annotate(
            judged=Count("pk"),
            accepted=Count("pk", filter=Q(outcome=Outcome.ACCEPTED.value)),
            rejected=Count("pk", filter=Q(outcome=Outcome.REJECTED.value)),
            illusions=Count("pk", filter=Q(illusion=True)),
        )
        .order_by()
        .values_list("run__task__suite", *names)
    )
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def suite_get(slug: str) -> Suite | None:
    """One query."""
    return Suite.objects.filter(slug=slug).first()


def task_get(suite: str, slug: str) -> Task | None:
    """The current revision of a task; one query."""
    tasks = Task.objects.filter(suite__slug=suite, slug=slug).select_related("suite")
    return tasks.order_by("-is_current", "-revision").first()


def kernel_get(kernel_id: UUID) -> Kernel | None:
    """One query."""
    related = Kernel.objects.select_related("task__suite", "parent")
    return related.filter(pk=kernel_id).first()


def gate_marks(verdicts: Iterable[Verdict]) -> dict[UUID, list[GateResult]]:
    """The twelve findings of each verdict, without counterexamples; one query."""
    marks: dict[UUID, list[GateResult]] = defaultdict(list)
    wanted = [verdict.pk for verdict in verdicts]
    rows = GateResult.objects.filter(verdict__in=wanted).only("verdict_id", "gate", "status")
    for row in rows.order_by("number"):
        marks[row.verdict_id].append(row)
    return marks


def run_findings(run_id: UUID, attempt: int) -> tuple[list[Event], str | None]:
    """Gate events of the attempt, and the gate that is being judged; one query."""
    kinds = ("gate_started", "gate")
    events = list(
        Event.objects.filter(run_id=run_id, attempt=attempt, kind__in=kinds).order_by("seq")
    )
    gates = [event for event in events if event.kind == "gate"]
    started = events and events[-1].kind == "gate_started"
    return gates, str(events[-1].payload.get("gate")) if started else None


def run_loose(run_id: UUID, attempt: int) -> Event | None:
    """The attempt's loose result, before there is a verdict; one query."""
    return (
        Event.objects.filter(run_id=run_id, attempt=attempt, kind="loose").order_by("-seq").first()
    )


def run_timeline(run_id: UUID) -> list[Event]:
    """The latest events that are no log lines, oldest first; one query."""
    shown = Event.objects.filter(run_id=run_id).exclude(kind__in=("log", "gate_started"))
    return list(shown.order_by("-seq")[:TIMELINE_EVENTS_SHOWN])[::-1]


def run_log(run_id: UUID) -> list[Event]:
    """The latest log events, oldest first; one query."""
    shown = Event.objects.filter(run_id=run_id, kind="log").order_by("-seq")
    return list(shown[: LOG_EVENTS_SHOWN + 1])[::-1]


def runs_of_kernel(kernel_id: UUID, limit: int = 20) -> Sequence[Run]:
    """The kernel's latest runs, as list rows; two queries."""
    return run_list(RunFilters(kernel=kernel_id), limit=limit).runs


def runs_of_task(task: Task, limit: int = 50) -> Sequence[Run]:
    """The latest runs of a task, as list rows; two queries."""
    return list(runs_for_lists().filter(task=task).order_by("-created_at", "-id")[:limit])


def recent_runs(limit: int = 12) -> Sequence[Run]:
    """The runs that something happened to last, as list rows; three queries.

    By the latest events and not by age: a campaign makes all of its runs at once.
    """
    latest = Event.objects.order_by("-id").values_list("run_id", flat=True)[:RECENT_EVENTS]
    ids = list(dict.fromkeys(latest))[:limit]
    place = {run_id: number for number, run_id in enumerate(ids)}
    return sorted(runs_for_lists().filter(pk__in=ids), key=lambda run: place[run.pk])


def filter_options() -> dict[str, list[str]]:
    """What the suite and node filters offer; two queries."""
    suites = Suite.objects.order_by("order", "slug").values_list("slug", flat=True)
    nodes = Run.objects.filter(node__isnull=False).order_by("node__name")
    names = nodes.values_list("node__name", flat=True).distinct()
    return {"suite": list(suites), "node": [str(name) for name in names]}


def running_by_queue() -> dict[str, int]:
    """Runs that nodes hold now, by the queue that the run asked for; one query."""
    rows = Run.objects.filter(status=RunStatus.RUNNING).values_list("requested_queue")
    return dict(rows.annotate(n=Count("pk")).order_by())


def filtered_counts(filters: RunFilters) -> tuple[RunCounts, VerdictCounts]:
    """How the runs of a filter stand; two queries."""
    chosen = Run.objects.filter(filters.query())
    return run_counts(chosen), verdict_counts(Verdict.objects.filter(run__in=chosen.values("pk")))
