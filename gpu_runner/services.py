"""Services of the fleet: the demo campaign, which judges a suite's corpus on one capability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from kernelhub.core import services, suites
from kernelhub.core.choices import ACTIVE, VerdictSource
from kernelhub.core.models import Campaign, Kernel, Run, Task
from verifier.records import GATE_SET_VERSION, VERIFIER_VERSION

DEMO_SLUG: Final = "demo"
DEMO_SEED: Final = 20_261_130
"""Fixed, so that two machines that show the demo show the same inputs."""


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo campaign, the runs just launched, and how many kernels had their verdict."""

    campaign: Campaign
    launched: tuple[Run, ...]
    judged: int


def demo_launch(*, suite_slug: str, queue: str, group: str = "") -> Demo:
    """Launches the suite's corpus on one capability, where it has no current verdict yet.

    A kernel with a verdict of this gate set and verifier on that queue, or with a run on its way
    there, is left alone. LookupError for an unknown suite; ServiceError when a kernel's task is
    not loaded.
    """
    kernels = corpus_register(suite_slug=suite_slug, group=group)
    settled = _settled(kernels, queue)
    missing = [kernel for kernel in kernels if kernel.pk not in settled]
    title = f"Demo: the {suite_slug} corpus"
    if not missing:
        campaign, _ = Campaign.objects.get_or_create(slug=DEMO_SLUG, defaults={"title": title})
        return Demo(campaign, (), len(kernels))
    campaign, runs = services.campaign_launch(
        slug=DEMO_SLUG, title=title, kernels=missing, queues=[queue], seed=DEMO_SEED
    )
    return Demo(campaign, tuple(runs), len(kernels) - len(missing))


def corpus_register(*, suite_slug: str, group: str = "") -> list[Kernel]:
    """The suite's corpus as kernels of its current tasks, in the corpus' own order."""
    tasks = _current_tasks(suite_slug)
    kernels = (
        _corpus_kernel(tasks, source)
        for source in suites.get(suite_slug).corpus()
        if group in ("", source.group)
    )
    return list({kernel.pk: kernel for kernel in kernels}.values())


def _current_tasks(suite_slug: str) -> dict[str, Task]:
    current = Task.objects.filter(suite__slug=suite_slug, is_current=True).select_related("suite")
    return {task.slug: task for task in current}


def _corpus_kernel(tasks: dict[str, Task], source: suites.KernelSource) -> Kernel:
    task = tasks.get(source.task_slug)
    if task is None:
        raise services.ServiceError(
            f"Task {source.task_slug!r} of {source.label} is not loaded: run load_suites first."
        )
    return services.kernel_register(
        task=task,
        source=source.source,
        entry=source.entry,
        author_name="kernelhub",
        author_kind=source.author_kind,
        label=source.label,
        group=source.group,
        expectation=source.expectation,
        notes=source.note,
    )


def _settled(kernels: Iterable[Kernel], queue: str) -> set[object]:
    current = Q(
        verdict__source=VerdictSource.FLEET,
        verdict__gate_set=GATE_SET_VERSION,
        verdict__verifier_version=VERIFIER_VERSION,
    )
    there = Q(node__queue=queue) | Q(requested_queue=queue)
    runs = Run.objects.filter(current | Q(status__in=ACTIVE), kernel__in=list(kernels))
    if queue:
        runs = runs.filter(there)
    return set(runs.values_list("kernel_id", flat=True))
