"""Counting verdicts: every score on a page is a query over verdicts, never a stored number.

A kernel counts once, by its latest verdict from our own fleet, so that judging it again changes
nothing but the date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from kernelhub.core.choices import VerdictSource
from kernelhub.core.models import GateResult, Kernel, Suite, Task, Verdict
from verifier.records import GateStatus, Outcome


def latest_verdicts(kernels: Iterable[UUID] | QuerySet[Kernel]) -> QuerySet[Verdict]:
    """The latest fleet verdict of each kernel (PostgreSQL's DISTINCT ON)."""
    return (
        Verdict.objects.filter(run__kernel__in=kernels, source=VerdictSource.FLEET)
        .order_by("run__kernel_id", "-created_at")
        .distinct("run__kernel_id")
    )


@dataclass(frozen=True, slots=True)
class LooseVsGates:
    """How often the loose test and the gates agree: the area between them is the illusion.

    ``unmeasured`` counts kernels that no loose test judged, ``undecided`` those that the gates
    left open.
    """

    both_accept: int = 0
    illusions: int = 0
    loose_rejects_gates_accept: int = 0
    both_reject: int = 0
    undecided: int = 0
    unmeasured: int = 0

    @property
    def loose_accepted(self) -> int:
        """Kernels that the loose test accepts and the gates decided about."""
        return self.both_accept + self.illusions

    @property
    def accepted(self) -> int:
        """Kernels that the gates accept, among those that the loose test judged."""
        return self.both_accept + self.loose_rejects_gates_accept

    @property
    def rejected(self) -> int:
        """Kernels that the gates reject, among those that the loose test judged."""
        return self.illusions + self.both_reject

    @property
    def judged(self) -> int:
        """Every kernel that has a verdict."""
        return self.accepted + self.rejected + self.undecided + self.unmeasured

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> LooseVsGates:
        counts: dict[str, int] = defaultdict(int)
        for verdict in verdicts:
            counts[_cell(verdict)] += 1
        return cls(**counts)


def _cell(verdict: Verdict) -> str:
    if verdict.outcome == Outcome.UNDECIDED.value:
        return "undecided"
    if verdict.loose_accepted is None:
        return "unmeasured"
    accepted = verdict.outcome == Outcome.ACCEPTED.value
    if verdict.loose_accepted:
        return "both_accept" if accepted else "illusions"
    return "loose_rejects_gates_accept" if accepted else "both_reject"


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of a suite and how its kernels fared; unjudged ones stay in the denominator."""

    task: Task
    kernels: int
    accepted: int
    rejected: int
    undecided: int
    illusions: int

    @property
    def unjudged(self) -> int:
        return self.kernels - self.accepted - self.rejected - self.undecided


@dataclass(frozen=True, slots=True)
class SuiteOverview:
    """A suite's tasks in the order of their slugs, and loose test against gates over them all."""

    suite: Suite
    tasks: Sequence[TaskRow]
    loose_vs_gates: LooseVsGates
    kernels: int = 0
    judged: int = 0


def suite_overview(suite: Suite) -> SuiteOverview:
    """Counts of the suite's current tasks; three queries whatever its size."""
    tasks = list(_tasks_of(suite))
    kernels = list(Kernel.objects.filter(task__in=tasks).values_list("id", "task_id"))
    task_of = dict(kernels)
    verdicts = list(
        latest_verdicts(task_of)
        .only("run__kernel_id", "outcome", "illusion", "loose_accepted")
        .select_related("run")
    )
    by_task: dict[UUID, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_task[task_of[verdict.run.kernel_id]].append(verdict)
    number: dict[UUID, int] = defaultdict(int)
    for _, task_id in kernels:
        number[task_id] += 1
    rows = [_task_row(task, number[task.pk], by_task[task.pk]) for task in tasks]
    return SuiteOverview(suite, rows, LooseVsGates.of(verdicts), len(kernels), len(verdicts))


def _tasks_of(suite: Suite) -> QuerySet[Task]:
    return (
        Task.objects.filter(suite=suite, is_current=True)
        .select_related("suite")
        .defer("contract", "contract_text", "reference")
        .order_by("slug")
    )


def _task_row(task: Task, kernels: int, verdicts: Sequence[Verdict]) -> TaskRow:
    outcomes = [verdict.outcome for verdict in verdicts]
    return TaskRow(
        task=task,
        kernels=kernels,
        accepted=outcomes.count(Outcome.ACCEPTED.value),
        rejected=outcomes.count(Outcome.REJECTED.value),
        undecided=outcomes.count(Outcome.UNDECIDED.value),
        illusions=sum(verdict.illusion for verdict in verdicts),
    )


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel with its latest fleet verdict, for the illusion table; gates that failed first."""

    kernel: Kernel
    verdict: Verdict | None
    failed: Sequence[GateResult] = field(default_factory=tuple)

    @property
    def as_expected(self) -> bool | None:
        """Whether the verdict is what the corpus says of its kernel; None where either is open."""
        if self.verdict is None or not self.kernel.expectation:
            return None
        wanted = Outcome.ACCEPTED if self.kernel.expectation == "control" else Outcome.REJECTED
        if self.kernel.expectation == "illusion":
            return self.verdict.illusion
        return self.verdict.outcome == wanted.value


def kernel_rows(suite: Suite, group: str = "") -> list[KernelRow]:
    """The kernels of a suite's current tasks, or of one group of its corpus; three queries."""
    kernels = (
        Kernel.objects.filter(task__suite=suite, task__is_current=True)
        .select_related("task__suite")
        .defer("source", "task__contract", "task__contract_text", "task__reference")
        .order_by("task__slug", "group", "label", "created_at")
    )
    found = list(kernels.filter(group=group) if group else kernels)
    failed = GateResult.objects.filter(status=GateStatus.FAIL.value).order_by("number")
    verdicts = (
        latest_verdicts([kernel.pk for kernel in found])
        .select_related("run")
        .defer("document", "environment")
        .prefetch_related(Prefetch("gates", failed, to_attr="failed_gates"))
    )
    by_kernel = {verdict.run.kernel_id: verdict for verdict in verdicts}
    return [_kernel_row(kernel, by_kernel.get(kernel.pk)) for kernel in found]


def _kernel_row(kernel: Kernel, verdict: Verdict | None) -> KernelRow:
    return KernelRow(kernel, verdict, getattr(verdict, "failed_gates", ()))


def illusion_rows(suite: Suite | None = None, limit: int = 200) -> list[Verdict]:
    """The kernels that are illusions by their latest verdict, each once, newest first, with run,
    kernel, task and the gates that failed."""
    kernels = Kernel.objects.filter(task__suite=suite) if suite else Kernel.objects.all()
    failed = GateResult.objects.filter(status=GateStatus.FAIL.value).order_by("number")
    verdicts = (
        Verdict.objects.filter(illusion=True, pk__in=latest_verdicts(kernels).values("pk"))
        .select_related("run__kernel", "run__task__suite", "run__node")
        .defer("document", "environment", "run__kernel__source")
        .prefetch_related(Prefetch("gates", failed, to_attr="failed_gates"))
        .order_by("-created_at")
    )
    return list(verdicts[:limit])
