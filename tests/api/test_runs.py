from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from kernelhub.core import services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Run, Task
from tests import factories as make
from tests.api.caller import Caller, faults, problem
from verifier import records

pytestmark = pytest.mark.django_db


def ids(response: Any) -> list[str]:
    return [run["id"] for run in response.json()["results"]]


def test_a_run_shows_its_verdict_gate_by_gate(nobody: Caller) -> None:
    run = make.make_finished(failed=("G4",), loose=True)
    shown = nobody.get(f"runs/{run.pk}").json()
    assert (shown["status"], shown["outcome"], shown["illusion"]) == ("finished", "rejected", True)
    gates = {gate["gate"]: gate["status"] for gate in shown["verdict"]["gates"]}
    assert list(gates) == [gate.value for gate in records.GateId]
    assert [gate for gate, status in gates.items() if status == "FAIL"] == ["G4"]


def test_a_reason_of_many_lines_is_one_line_that_says_the_cause(nobody: Caller) -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(lease.run, failed=("G12",))
    head = "Triton's compiler refuses f: CompilationError: at 2:4:"
    reason = f"{head}\n  y = X\n      ^\nNameError(X)"
    gates = (*verdict.gates[:-1], replace(verdict.gates[-1], reason=reason))
    services.run_finish(
        run_id=lease.run.pk, attempt=lease.attempt, verdict=replace(verdict, gates=gates)
    )
    gate = nobody.get(f"runs/{lease.run.pk}").json()["verdict"]["gates"][-1]
    assert gate["reason"] == f"{head} NameError(X)"
    document = nobody.get(f"runs/{lease.run.pk}/verdict").json()
    assert document["gates"][-1]["reason"] == reason


def test_the_pages_name_of_the_text_filter_works_too(nobody: Caller) -> None:
    make.make_finished()
    wanted = str(make.make_finished().kernel.sha256)
    assert ids(nobody.get("runs", q=wanted)) == ids(nobody.get("runs", text=wanted))
    assert len(ids(nobody.get("runs", q=wanted))) == 1
    assert ids(nobody.get("runs", q="nothing-of-that")) == []
    document = problem(nobody.get("runs", q="a", text="b"), 400, "invalid-request")
    assert document["errors"][0]["parameter"] == "q"


def test_an_errored_run_says_what_of_ours_broke(nobody: Caller) -> None:
    lease = make.make_lease()
    services.run_error(
        run_id=lease.run.pk, attempt=lease.attempt, kind=ErrorKind.TASK, message="no reference"
    )
    shown = nobody.get(f"runs/{lease.run.pk}").json()
    assert (shown["status"], shown["outcome"]) == ("errored", None)
    assert shown["error"] == {"kind": "task", "message": "no reference"}


def test_the_verdict_is_the_verifiers_document(nobody: Caller) -> None:
    run = make.make_finished()
    document = nobody.get(f"runs/{run.pk}/verdict").json()
    assert records.from_json(records.Verdict, document) == make.verdict_record(run)


def test_a_run_without_a_verdict_says_what_it_is_doing(nobody: Caller) -> None:
    run = make.make_run()
    document = problem(nobody.get(f"runs/{run.pk}/verdict"), 404, "not-found")
    assert "queued" in document["detail"]


@pytest.mark.parametrize("path", ["", "/verdict", "/events", "/events?wait=20"])
def test_an_unknown_run_is_not_found_at_once(nobody: Caller, path: str) -> None:
    problem(nobody.get(f"runs/{uuid4()}{path}"), 404, "not-found")


def test_pages_hold_every_run_once_while_new_ones_arrive(nobody: Caller) -> None:
    first = [str(make.make_run().pk) for _ in range(7)]
    response = nobody.get("runs", limit=3)
    seen = ids(response)
    while response.json()["next"]:
        make.make_run()
        response = nobody.get(response.json()["next"])
        seen += ids(response)
    assert seen == first[::-1]


def test_a_next_page_keeps_the_filters(nobody: Caller) -> None:
    done = [str(make.make_finished().pk) for _ in range(2)]
    make.make_run()
    response = nobody.get("runs", limit=1, status="finished")
    assert ids(response) + ids(nobody.get(response.json()["next"])) == done[::-1]


def test_runs_can_be_narrowed_down(nobody: Caller, task: Task) -> None:
    wanted = make.make_finished(make.make_run(make.make_kernel(task)), failed=("G1",))
    make.make_finished(loose=False, failed=("G1",))
    make.make_run(make.make_kernel(task))
    make.make_finished()
    for query in (
        {"suite": "fuzzoracle", "status": "finished"},
        {"task": "fuzzoracle/softmax", "outcome": "rejected"},
        {"illusion": "true"},
        {"kernel": wanted.kernel_id},
        {"node": wanted.node and wanted.node.name, "author_kind": "person"},
        {"text": wanted.kernel.sha256[:12]},
    ):
        assert ids(nobody.get("runs", **query)) == [str(wanted.pk)], query


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "done"),
        ("outcome", "ok"),
        ("illusion", "maybe"),
        ("kernel", "5"),
        ("limit", "0"),
        ("limit", "201"),
        ("limit", "x"),
        ("cursor", "zzz"),
        ("cursor", "WzEsMiwzXQ"),
        ("cursor", "é"),
        ("task", "softmax"),
        ("stauts", "queued"),
        ("text", "\0"),
    ],
)
def test_a_wrong_filter_is_named(nobody: Caller, name: str, value: str) -> None:
    document = problem(nobody.get("runs", **{name: value}), 400, "invalid-request")
    assert name in faults(document)


def test_a_list_costs_the_same_number_of_queries_however_long(
    nobody: Caller, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(8):
        make.make_finished()
    with django_assert_max_num_queries(4):
        assert len(ids(nobody.get("runs"))) == 8


def test_the_submitter_cancels_a_run(api: Caller, body: dict[str, Any]) -> None:
    run_id = api.submit(body).json()["id"]
    assert api.post(f"runs/{run_id}/cancel").json()["status"] == "cancelled"


def test_cancelling_twice_is_a_conflict(api: Caller, body: dict[str, Any]) -> None:
    run_id = api.submit(body).json()["id"]
    api.post(f"runs/{run_id}/cancel")
    document = problem(api.post(f"runs/{run_id}/cancel"), 409, "conflict")
    assert "cancelled" in document["detail"]


def test_somebody_elses_run_is_not_to_be_cancelled(
    api: Caller, bob: Caller, body: dict[str, Any]
) -> None:
    run_id = api.submit(body).json()["id"]
    problem(bob.post(f"runs/{run_id}/cancel"), 403, "forbidden")
    assert Run.objects.get().status == "queued"


def test_a_curator_cancels_any_run(api: Caller, curator: Caller, body: dict[str, Any]) -> None:
    run_id = api.submit(body).json()["id"]
    assert curator.post(f"runs/{run_id}/cancel").status_code == 200
