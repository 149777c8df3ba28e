"""What the first page, the fleet page and a progress bar count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet

from kernelhub.core.choices import NodeStatus, RunStatus
from kernelhub.core.models import Campaign, Kernel, Node, Run, Task, Verdict
from verifier.records import Outcome


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Runs by status; errored and cancelled ones are no verdicts and are shown apart."""

    queued: int = 0
    running: int = 0
    finished: int = 0
    errored: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.active + self.ended

    @property
    def active(self) -> int:
        return self.queued + self.running

    @property
    def ended(self) -> int:
        return self.finished + self.errored + self.cancelled


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    accepted: int
    rejected: int
    undecided: int
    illusions: int
    loose_accepted: int

    @property
    def total(self) -> int:
        return self.accepted + self.rejected + self.undecided


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    tasks: int
    kernels: int
    runs: RunCounts
    verdicts: VerdictCounts
    nodes_online: int
    nodes: int


def run_counts(runs: QuerySet[Run] | None = None) -> RunCounts:
    """Runs by status, all or those of the given queryset; one query."""
    chosen = Run.objects.all() if runs is None else runs
    return RunCounts(
        **chosen.aggregate(
            **{status.value: Count("id", filter=Q(status=status)) for status in RunStatus}
        )
    )


def verdict_counts(verdicts: QuerySet[Verdict] | None = None) -> VerdictCounts:
    """Verdicts by outcome, all or those of the given queryset; one query."""
    chosen = Verdict.objects.all() if verdicts is None else verdicts
    outcomes = {outcome.value: Count("id", filter=Q(outcome=outcome.value)) for outcome in Outcome}
    return VerdictCounts(
        **chosen.aggregate(
            **outcomes,
            illusions=Count("id", filter=Q(illusion=True)),
            loose_accepted=Count("id", filter=Q(loose_accepted=True)),
        )
    )


def overview_counts() -> OverviewCounts:
    """The figures of the first page; five queries."""
    nodes = Node.objects.aggregate(
        all=Count("id"), online=Count("id", filter=Q(status=NodeStatus.ONLINE))
    )
    return OverviewCounts(
        tasks=Task.objects.filter(is_current=True).count(),
        kernels=Kernel.objects.count(),
        runs=run_counts(),
        verdicts=verdict_counts(),
        nodes_online=nodes["online"],
        nodes=nodes["all"],
    )


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    campaign: Campaign
    runs: RunCounts
    verdicts: VerdictCounts

    @property
    def done(self) -> bool:
        return self.runs.active == 0


def campaign_progress(campaign_id: UUID) -> CampaignProgress:
    """How far a campaign is; three queries. Campaign.DoesNotExist without it."""
    campaign = Campaign.objects.get(pk=campaign_id)
    return CampaignProgress(
        campaign,
        run_counts(Run.objects.filter(campaign=campaign)),
        verdict_counts(Verdict.objects.filter(run__campaign=campaign)),
    )


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Runs that wait for a capability ('' is any node), and since when the first one does."""

    queue: str
    waiting: int
    oldest_at: datetime | None


def queue_rows() -> list[QueueRow]:
    """Waiting runs by the queue that they asked for; one query."""
    waiting = Run.objects.filter(status=RunStatus.QUEUED).values("requested_queue")
    rows = waiting.annotate(n=Count("id"), oldest=Min("created_at")).order_by("requested_queue")
    return [QueueRow(row["requested_queue"], row["n"], row["oldest"]) for row in rows]


def fleet() -> Sequence[Node]:
    """Every node with ``running``, the number of runs that it holds right now; one query."""
    held = Count("runs", filter=Q(runs__status=RunStatus.RUNNING))
    return list(Node.objects.annotate(running=held).order_by("name"))
