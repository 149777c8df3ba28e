from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from django.core.management import CommandError, call_command
from pytest_django import DjangoAssertNumQueries

from kernelhub.core import services, suites
from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Task
from kernelhub.core.suites import KernelSource, TaskSource, WorkloadSource
from tests import factories as make

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Folder:
    """A suite as its folder might define it."""

    sources: tuple[TaskSource, ...]
    slug: str = "synced"
    title: str = "Synced"
    description: str = ""
    order: int = 1
    kernels: tuple[KernelSource, ...] = field(default=())

    def tasks(self) -> Iterable[TaskSource]:
        return self.sources

    def corpus(self) -> Iterable[KernelSource]:
        return self.kernels


SMALL = WorkloadSource("small", {"n": 64}, {"T": "float32"})
SOFTMAX = TaskSource(
    "softmax", "Softmax", "reduction", ("rows",), make.CONTRACT, make.REFERENCE, (SMALL,)
)


def current(slug: str = "softmax") -> Task:
    return Task.objects.get(suite__slug="synced", slug=slug, is_current=True)


def test_a_new_task_is_stored_with_its_workloads() -> None:
    done = services.suite_sync(Folder((SOFTMAX,)))
    assert done.created == ("softmax",)
    assert current().digest == SOFTMAX.digest
    assert [one.dims for one in current().workloads.all()] == [{"n": 64}]


def test_a_repeated_sync_changes_nothing() -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    before = Task.objects.values().get(), list(current().workloads.values())
    done = services.suite_sync(Folder((SOFTMAX,)))
    assert (done.created, done.revised, done.retired, done.unchanged) == ((), (), (), 1)
    assert (Task.objects.values().get(), list(current().workloads.values())) == before


@pytest.mark.parametrize(
    "changed",
    [
        replace(SOFTMAX, reference=f"{make.REFERENCE}# changed\n"),
        replace(SOFTMAX, contract={**make.CONTRACT, "dims": {"n": [65]}}),
    ],
)
def test_a_changed_contract_or_reference_is_a_new_revision(changed: TaskSource) -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    first = current()
    assert services.suite_sync(Folder((changed,))).revised == ("softmax",)
    first.refresh_from_db()
    assert (first.digest, first.revision, first.is_current) == (SOFTMAX.digest, 1, False)
    assert (current().digest, current().revision) == (changed.digest, 2)


def test_a_changed_title_and_workload_are_no_new_revision() -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    heavier = replace(SOFTMAX, title="Row softmax", workloads=(replace(SMALL, weight=2.0),))
    assert services.suite_sync(Folder((heavier,))).revised == ()
    task = current()
    assert (task.revision, task.title) == (1, "Row softmax")
    assert [one.weight for one in task.workloads.all()] == [2.0]


def test_what_a_curator_changed_stays_until_the_suite_changes() -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    Task.objects.update(title="A better title")
    services.suite_sync(Folder((SOFTMAX,)))
    assert current().title == "A better title"


def test_a_task_that_leaves_is_retired_and_published_when_it_returns() -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    assert services.suite_sync(Folder(())).retired == ("softmax",)
    assert services.suite_sync(Folder(())).retired == ()
    assert current().status == TaskStatus.RETIRED
    services.suite_sync(Folder((SOFTMAX,)))
    assert (current().status, current().revision) == (TaskStatus.PUBLISHED, 1)


def test_a_task_that_a_curator_retired_stays_so() -> None:
    services.suite_sync(Folder((SOFTMAX,)))
    Task.objects.update(status=TaskStatus.RETIRED)
    services.suite_sync(Folder((SOFTMAX,)))
    assert current().status == TaskStatus.RETIRED


def test_an_unchanged_suite_costs_the_same_whatever_its_size(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    folder = Folder(tuple(replace(SOFTMAX, slug=f"softmax{n}") for n in range(12)))
    services.suite_sync(folder)
    with django_assert_max_num_queries(10):
        services.suite_sync(folder)


def test_load_suites_loads_the_named_suite_and_says_what_it_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(suites._registry, "synced", Folder((SOFTMAX,)))
    for _ in range(2):
        call_command("load_suites", "synced")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "synced: 1 new, 0 revised, 0 retired, 0 unchanged"
    assert second == "synced: 0 new, 0 revised, 0 retired, 1 unchanged"


def test_load_suites_names_the_suites_when_it_knows_no_such() -> None:
    with pytest.raises(CommandError, match=r"no suite 'nope'; registered: .*fuzzoracle"):
        call_command("load_suites", "nope")
