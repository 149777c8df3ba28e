from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gpu_runner.services import DEMO_SEED, DEMO_SLUG
from kernelhub.core import services, suites
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Run
from kernelhub.core.suites import KernelSource, TaskSource
from tests import factories as make

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Corpus:
    """A suite of one task and two kernels."""

    slug: str = "tiny"
    title: str = "Tiny"
    description: str = ""
    order: int = 9

    def tasks(self) -> Iterable[TaskSource]:
        yield TaskSource("softmax", "Softmax", "", (), make.CONTRACT, make.REFERENCE)

    def corpus(self) -> Iterable[KernelSource]:
        yield KernelSource("softmax", "good", make.SOURCE, expectation="control", group="a")
        yield KernelSource("softmax", "bad", "def run(x):\n    return x\n", group="b")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suites._registry, "tiny", Corpus())
    call_command("load_suites", "tiny", verbosity=0)


@pytest.fixture
def launch(loaded: None, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        call_command(
            "launch_demo", "--suite", "tiny", "--queue", "cpu-interpret", "--json", *arguments
        )
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return run


def test_the_corpus_is_launched_under_the_demo_campaign_with_a_fixed_seed(launch: Any) -> None:
    document = launch()
    runs = Run.objects.filter(campaign__slug=DEMO_SLUG).select_related("kernel")
    assert (document["launched"], document["judged"]) == (2, 0)
    assert {run.kernel.label for run in runs} == {"good", "bad"}
    assert {(run.seed, run.requested_queue) for run in runs} == {(DEMO_SEED, "cpu-interpret")}


def test_a_second_launch_leaves_alone_what_waits_and_what_is_judged(launch: Any) -> None:
    first = launch()
    make.make_finished(Run.objects.get(kernel__label="good"))
    second = launch()
    assert (second["launched"], second["campaign"]) == (0, first["campaign"])
    assert Run.objects.count() == 2


def test_a_kernel_whose_run_errored_is_launched_again(launch: Any) -> None:
    launch()

    lease = make.make_lease(Run.objects.get(kernel__label="bad"))
    services.run_error(run_id=lease.run.pk, attempt=1, kind=ErrorKind.TASK, message="bad task")
    assert launch()["launched"] == 1


def test_one_group_of_the_corpus_can_be_launched_alone(launch: Any) -> None:
    assert launch("--group", "a")["launched"] == 1


def test_an_unknown_suite_is_a_line_and_no_traceback() -> None:
    with pytest.raises(CommandError, match="no suite 'nope'"):
        call_command("launch_demo", "--suite", "nope", "--queue", "")


def test_a_corpus_whose_tasks_are_not_loaded_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(suites._registry, "tiny", Corpus())
    with pytest.raises(CommandError, match="run load_suites first"):
        call_command("launch_demo", "--suite", "tiny", "--queue", "")
