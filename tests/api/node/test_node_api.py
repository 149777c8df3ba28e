"""The hub as a node agent sees it: what a node token reaches, and what it is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from gpu_runner import protocol
from gpu_runner.hub import Hub
from kernelhub.accounts.roles import USER_SCOPES
from kernelhub.accounts.services import node_token_create, token_create
from kernelhub.core import services
from kernelhub.core.choices import NodeStatus
from kernelhub.core.models import Event, Node, Run
from tests import factories as make
from tests.api.caller import Caller, problem
from verifier import records

pytestmark = pytest.mark.django_db


def caller(node: Node) -> Caller:
    return Caller(Client(), node_token_create(node=node).text)


@pytest.fixture
def node() -> Node:
    return make.make_node("alpha")


@pytest.fixture
def alpha(node: Node) -> Caller:
    return caller(node)


@pytest.fixture
def beta() -> Caller:
    """Another node."""
    return caller(make.make_node("beta"))


def url(run: Run | str, what: str) -> str:
    pk = run if isinstance(run, str) else run.pk
    return f"/api/node/v1/runs/{pk}/{what}/"


def post(who: Caller, run: Run | str, what: str, **message: Any) -> Any:
    return who.post(url(run, what), message)


def lease(who: Caller) -> Any:
    return who.post("/api/node/v1/lease/", {"run": None})


def batch(first: int, *texts: str, attempt: int = 1) -> dict[str, Any]:
    lines = [{"kind": "log", "payload": {"source": "kernel", "text": text}} for text in texts]
    return {"attempt": attempt, "first": first, "events": lines}


def verdict_of(run: Run, **verdict: Any) -> dict[str, Any]:
    return records.to_json(make.verdict_record(run, **verdict))


def expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    services.run_requeue_expired()


@pytest.fixture
def run(node: Node) -> Run:
    """A run that alpha has leased."""
    return make.make_lease(node=node).run


def test_a_lease_brings_all_that_judging_takes(alpha: Caller) -> None:
    run = make.make_run()
    document = lease(alpha).json()
    assert document["run"] == str(run.pk)
    assert document["source"] == run.kernel.source
    assert (document["attempt"], document["seed"]) == (1, run.seed)


def test_no_waiting_run_is_no_content(alpha: Caller) -> None:
    assert lease(alpha).status_code == 204


def test_a_draining_node_gets_no_run(alpha: Caller) -> None:
    make.make_run()
    Node.objects.update(status=NodeStatus.DRAINING)
    assert lease(alpha).status_code == 204


def test_a_task_folder_has_the_digest_that_the_lease_names(alpha: Caller, run: Run) -> None:
    document = alpha.get(url(run, "task/1")).json()
    assert protocol.TaskFolder(**document).digest == run.task.digest


WRITES = [
    ("heartbeat", {"attempt": 1}),
    ("events", batch(0, "a")),
    ("error", {"attempt": 1, "kind": "infrastructure", "message": "no GPU"}),
]


@pytest.mark.parametrize(("what", "message"), WRITES)
def test_another_nodes_run_is_out_of_reach(
    beta: Caller, run: Run, what: str, message: dict[str, Any]
) -> None:
    problem(post(beta, run, what, **message), 409, "conflict")
    run.refresh_from_db()
    assert (run.status, run.last_seq) == ("running", 2)


def test_another_nodes_task_verdict_and_release_are_out_of_reach(beta: Caller, run: Run) -> None:
    problem(beta.get(url(run, "task/1")), 409, "conflict")
    problem(post(beta, run, "verdict", attempt=1, verdict=verdict_of(run)), 409, "conflict")
    post(beta, run, "release", attempt=1, reason="mine now")
    run.refresh_from_db()
    assert run.status == "running"


@pytest.mark.parametrize(("what", "message"), WRITES)
def test_a_stale_attempt_is_refused(
    alpha: Caller, node: Node, run: Run, what: str, message: dict[str, Any]
) -> None:
    expire(run)
    make.make_lease(run, node)
    problem(post(alpha, run, what, **message), 409, "conflict")
    problem(post(alpha, run, "verdict", attempt=1, verdict=verdict_of(run)), 409, "conflict")


@pytest.mark.parametrize("path", ["register", "goodbye", "lease"])
def test_only_a_node_token_opens_the_node_api(path: str, alice_token: str) -> None:
    address = f"/api/node/v1/{path}/"
    problem(Caller(Client()).post(address, {}), 401, "unauthenticated")
    problem(Caller(Client(), alice_token).post(address, {}), 403, "forbidden")


@pytest.fixture
def alice_token() -> str:
    user = User.objects.create_superuser("root", password="x")
    return token_create(user=user, label="test", scopes=USER_SCOPES).text


@pytest.mark.parametrize(("path", "body"), [("runs", {}), ("campaigns", {}), ("tokens", {})])
def test_a_node_token_writes_nothing_outside_the_node_api(
    alpha: Caller, path: str, body: dict[str, Any]
) -> None:
    problem(alpha.post(path, body), 403, "forbidden")


def test_a_batch_posted_twice_is_stored_once(alpha: Caller, run: Run) -> None:
    for _ in range(2):
        answer = alpha.post(url(run, "events"), batch(0, "a", "b")).json()
    assert answer == {"received": 2, "cancelled": False}
    assert Event.objects.filter(run=run, kind="log").count() == 2


def test_a_batch_after_a_gap_is_told_where_to_resume(alpha: Caller, run: Run) -> None:
    answer = alpha.post(url(run, "events"), batch(5, "f")).json()
    assert answer == {"received": 0, "cancelled": False}
    assert not Event.objects.filter(run=run, kind="log").exists()


def test_a_batch_numbered_below_zero_is_refused(alpha: Caller, run: Run) -> None:
    problem(alpha.post(url(run, "events"), batch(-1, "a", "b")), 400, "invalid-request")


def test_a_batch_is_bounded(alpha: Caller, run: Run) -> None:
    texts = ["x"] * (protocol.EVENTS_PER_BATCH + 1)
    problem(alpha.post(url(run, "events"), batch(0, *texts)), 413, "too-large")


@pytest.mark.parametrize("kind", ["finished", "verdict", "leased", "nonsense"])
def test_a_node_does_not_post_events_of_the_hub(alpha: Caller, run: Run, kind: str) -> None:
    lines = [{"kind": kind, "payload": {}}]
    answer = post(alpha, run, "events", attempt=1, first=0, events=lines)
    problem(answer, 400, "invalid-request")


def test_a_verdict_posted_twice_is_answered_alike(alpha: Caller, run: Run) -> None:
    document = verdict_of(run, failed=("G4",))
    answers = [post(alpha, run, "verdict", attempt=1, verdict=document) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [204, 204]
    assert Event.objects.filter(run=run, kind="finished").count() == 1


def test_another_verdict_afterwards_is_refused(alpha: Caller, run: Run) -> None:
    post(alpha, run, "verdict", attempt=1, verdict=verdict_of(run))
    other = verdict_of(run, failed=("G4",))
    problem(post(alpha, run, "verdict", attempt=1, verdict=other), 409, "conflict")


def test_an_error_posted_twice_costs_one_attempt_also_once_another_node_judges(
    alpha: Caller, run: Run
) -> None:
    message = {"attempt": 1, "kind": "infrastructure", "message": "no GPU"}
    assert post(alpha, run, "error", **message).status_code == 204
    make.make_lease(run)
    assert post(alpha, run, "error", **message).status_code == 204
    run.refresh_from_db()
    assert (run.status, run.attempt, run.lost_attempts) == ("running", 2, 1)


def broken_verdict(run: Run) -> dict[str, Any]:
    verdict = make.verdict_record(run)
    broken = records.GateResult(
        records.GateId.AGREEMENT, records.GateStatus.ERROR, "", reason="KeyError: 'x'"
    )
    return records.to_json(replace(verdict, gates=(broken, *verdict.gates[1:])))


def test_a_verdict_in_which_a_gate_broke_queues_the_run_again(alpha: Caller, run: Run) -> None:
    document = broken_verdict(run)
    answers = [post(alpha, run, "verdict", attempt=1, verdict=document) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [204, 204]
    run.refresh_from_db()
    assert (run.status, run.lost_attempts) == ("queued", 1)


def test_a_gate_that_breaks_each_time_errors_the_run(alpha: Caller, node: Node) -> None:
    run = make.make_run(max_attempts=2)
    for attempt in (1, 2):
        make.make_lease(run, node)
        post(alpha, run, "verdict", attempt=attempt, verdict=broken_verdict(run))
    run.refresh_from_db()
    assert (run.status, run.error_kind) == ("errored", "infrastructure")
    assert "G1: KeyError" in run.error_message


def test_a_verdict_that_the_database_cannot_hold_is_refused(alpha: Caller, run: Run) -> None:
    document = verdict_of(run)
    document["gates"][0]["passed"] = 2**40
    problem(post(alpha, run, "verdict", attempt=1, verdict=document), 400, "invalid-request")
    run.refresh_from_db()
    assert run.status == "running"


@pytest.mark.parametrize("verdict", [{}, {"gates": []}, {"seed": "x"}])
def test_a_verdict_that_is_none_is_refused(
    alpha: Caller, run: Run, verdict: dict[str, Any]
) -> None:
    problem(post(alpha, run, "verdict", attempt=1, verdict=verdict), 400, "invalid-request")


def test_a_release_queues_the_run_at_once_and_may_be_repeated(alpha: Caller, run: Run) -> None:
    for _ in range(2):
        assert post(alpha, run, "release", attempt=1, reason="stops").status_code == 204
    run.refresh_from_db()
    assert (run.status, run.lost_attempts) == ("queued", 0)


def test_a_heartbeat_tells_of_a_cancel(alpha: Caller, run: Run) -> None:
    services.run_cancel(run=run)
    assert post(alpha, run, "heartbeat", attempt=1).json()["cancelled"] is True


def test_a_node_that_registers_is_online_and_a_goodbye_takes_it_off(
    alpha: Caller, node: Node
) -> None:
    environment = records.to_json(make.environment_record())
    document = {"queue": "cpu-interpret", "environment": environment}
    welcome = alpha.post("/api/node/v1/register/", document).json()
    assert welcome["node"] == "alpha"
    assert alpha.post("/api/node/v1/goodbye/", {}).status_code == 204
    node.refresh_from_db()
    assert node.status == NodeStatus.OFFLINE


def test_surrogates_and_nul_survive_the_way_to_the_hub(
    transactional_db: None, live_server: Any
) -> None:
    node = make.make_node()
    run = make.make_lease(node=node).run
    with Hub(live_server.url, node_token_create(node=node).text) as hub:
        held = protocol.LeasedRun(str(run.pk), 1, 30, run.seed, "t", "", "", "run", "")
        text = {"source": "kernel", "text": "a\ud800b\0c"}
        receipt = hub.events(held, 0, (protocol.EventLine("log", text),))
    assert receipt.received == 1
    assert Event.objects.get(run=run, kind="log").payload["text"] == "a\ufffdb\\x00c"
