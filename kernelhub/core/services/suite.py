"""Bringing the stored tasks in line with what a suite's folder says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Suite, Task, Workload
from kernelhub.core.suites import SuiteDefinition, TaskSource, contract_text


@dataclass(frozen=True, slots=True)
class SuiteSync:
    """What a sync did, by task slug."""

    suite: Suite
    created: tuple[str, ...]
    revised: tuple[str, ...]
    retired: tuple[str, ...]
    unchanged: int


@transaction.atomic
def suite_sync(definition: SuiteDefinition) -> SuiteSync:
    """Stores the suite and its tasks; a changed contract or reference becomes a new revision.

    Safe to repeat: an unchanged suite costs two statements. Changed titles, tags and workloads
    are taken over without a new revision. A task that left the suite keeps its history and is
    marked retired, and published again when it returns.
    """
    suite = _suite_store(definition)
    sources = {source.slug: source for source in definition.tasks()}
    current = {task.slug: task for task in suite.tasks.filter(is_current=True)}
    created = [slug for slug in sources if slug not in current]
    revised = [
        slug
        for slug, task in current.items()
        if slug in sources and sources[slug].digest != task.digest
    ]
    retired = [slug for slug, task in current.items() if _left(task, sources)]
    for slug in (*created, *revised):
        _task_store(suite, sources[slug])
    for slug in sources.keys() & current.keys() - set(revised):
        _task_relist(current[slug], sources[slug])
    leaving = suite.tasks.filter(slug__in=retired, is_current=True)
    leaving.update(status=TaskStatus.RETIRED, left_at=Now())
    changed = len(created) + len(revised)
    return SuiteSync(suite, tuple(created), tuple(revised), tuple(retired), len(sources) - changed)


def _suite_store(definition: SuiteDefinition) -> Suite:
    suite, _ = Suite.objects.update_or_create(
        slug=definition.slug,
        defaults={
            "title": definition.title,
            "description": definition.description,
            "order": definition.order,
        },
    )
    return suite


def _left(task: Task, sources: dict[str, TaskSource]) -> bool:
    return task.slug not in sources and task.status != TaskStatus.RETIRED


def _task_relist(task: Task, source: TaskSource) -> None:
    """Brings what is not part of the revision in line; does nothing where nothing changed."""
    if task.left_at is not None:
        returned = {"status": TaskStatus.PUBLISHED, "left_at": None}
        Task.objects.filter(pk=task.pk).update(**returned)
    if task.listing != source.listing:
        Task.objects.filter(pk=task.pk).update(**_listed(source))
        task.workloads.all().delete()
        Workload.objects.bulk_create(_workload_rows(task, source))


def _listed(source: TaskSource) -> dict[str, Any]:
    return {
        "title": source.title,
        "category": source.category,
        "tags": list(source.tags),
        "difficulty": source.difficulty,
        "listing": source.listing,
    }


def _task_store(suite: Suite, source: TaskSource) -> Task:
    """The next revision of the task, which becomes the current one."""
    earlier = Task.objects.select_for_update().filter(suite=suite, slug=source.slug)
    revision = max((task.revision for task in earlier), default=0) + 1
    earlier.filter(is_current=True).update(is_current=False)
    task = Task.objects.create(
        suite=suite,
        slug=source.slug,
        revision=revision,
        contract=dict(source.contract),
        contract_text=contract_text(source.contract),
        reference=source.reference,
        digest=source.digest,
        **_listed(source),
    )
    Workload.objects.bulk_create(_workload_rows(task, source))
    return task


def _workload_rows(task: Task, source: TaskSource) -> list[Workload]:
    return [
        Workload(
            task=task,
            name=one.name,
            dims=dict(one.dims),
            dtypes=dict(one.dtypes),
            weight=one.weight,
            phase=one.phase,
        )
        for one in source.workloads
    ]
