from __future__ import annotations

from uuid import uuid4

import pytest

from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Task, Workload
from tests import factories as make
from tests.api.caller import Caller, faults, problem

pytestmark = pytest.mark.django_db


def test_a_suite_counts_its_published_tasks(nobody: Caller, task: Task) -> None:
    make.make_task(task.suite, status=TaskStatus.DRAFT)
    make.make_suite("empty")
    suites = {suite["slug"]: suite["tasks"] for suite in nobody.get("suites").json()["results"]}
    assert suites == {"fuzzoracle": 1, "empty": 0}
    assert nobody.get("suites/fuzzoracle").json()["tasks"] == 1


def test_a_task_shows_contract_reference_and_workloads(nobody: Caller, task: Task) -> None:
    Workload.objects.create(task=task, name="small", dims={"n": 64}, dtypes={"T": "float32"})
    shown = nobody.get("tasks/fuzzoracle/softmax").json()
    assert shown["contract"] == make.CONTRACT
    assert shown["reference"] == make.REFERENCE
    assert shown["workloads"][0]["dims"] == {"n": 64}


def test_only_the_current_published_revision_is_shown(nobody: Caller, task: Task) -> None:
    make.make_task(task.suite, "old", is_current=False)
    make.make_task(task.suite, "draft", status=TaskStatus.DRAFT)
    paths = [shown["path"] for shown in nobody.get("tasks").json()["results"]]
    assert paths == ["fuzzoracle/softmax"]
    problem(nobody.get("tasks/fuzzoracle/draft"), 404, "not-found")


def test_tasks_come_page_by_page_in_a_stable_order(nobody: Caller) -> None:
    for suite in (make.make_suite("b"), make.make_suite("a")):
        for slug in ("z", "x", "y"):
            make.make_task(suite, slug)
    response = nobody.get("tasks", limit=4)
    paths = [shown["path"] for shown in response.json()["results"]]
    paths += [shown["path"] for shown in nobody.get(response.json()["next"]).json()["results"]]
    assert paths == ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z"]


def test_tasks_can_be_narrowed_down(nobody: Caller, task: Task) -> None:
    wanted = make.make_task(task.suite, "wanted", category="matmul", tags=["fp16", "large"])
    for query in ({"category": "matmul"}, {"tag": "fp16"}, {"suite": "fuzzoracle", "tag": "large"}):
        found = nobody.get("tasks", **query).json()["results"]
        assert [shown["path"] for shown in found] == [wanted.path], query


@pytest.mark.parametrize("cursor", ["x", "WyJhIl0", "WyJhIiwgIlx1MDAwMCJd"])
def test_a_cursor_that_no_page_gave_is_refused(nobody: Caller, cursor: str) -> None:
    document = problem(nobody.get("tasks", cursor=cursor), 400, "invalid-request")
    assert "cursor" in faults(document)


def test_a_kernel_shows_its_source_and_runs(nobody: Caller) -> None:
    run = make.make_run()
    shown = nobody.get(f"kernels/{run.kernel_id}").json()
    assert shown["source"] == run.kernel.source
    assert shown["task"] == run.task.path
    assert shown["runs"] == [str(run.pk)]


@pytest.mark.parametrize(
    "path", ["suites/none", "tasks/no/ne", "kernels/{uuid}", "campaigns/{uuid}"]
)
def test_what_is_not_there_is_not_found(nobody: Caller, path: str) -> None:
    problem(nobody.get(path.format(uuid=uuid4())), 404, "not-found")
