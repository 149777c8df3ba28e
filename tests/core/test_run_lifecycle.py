from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind, NodeStatus, RunStatus
from kernelhub.core.models import Event, Node, Run, Verdict
from tests import factories as make
from verifier import records

pytestmark = pytest.mark.django_db


def kinds(run: Run) -> list[str]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("kind", flat=True))


def expire(run: Run) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=past)


def log(text: str) -> events.Log:
    return events.Log("kernel", text)


def test_an_enqueued_run_is_queued_with_its_first_event() -> None:
    run = make.make_run()
    assert (run.status, kinds(run), run.last_seq) == (RunStatus.QUEUED, ["queued"], 1)


def test_the_same_idempotency_key_gives_the_same_run() -> None:
    kernel = make.make_kernel()
    first = make.make_run(kernel, idempotency_key="k")
    assert make.make_run(kernel, idempotency_key="k").pk == first.pk


def test_an_idempotency_key_used_for_another_kernel_is_a_conflict() -> None:
    make.make_run(idempotency_key="k")
    with pytest.raises(services.IdempotencyConflictError):
        make.make_run(idempotency_key="k")


def test_a_kernel_of_another_task_is_refused() -> None:
    with pytest.raises(services.ServiceError):
        services.run_enqueue(task=make.make_task(), kernel=make.make_kernel())


def test_a_claim_raises_the_attempt_and_names_the_node() -> None:
    lease = make.make_lease(node=make.make_node("alpha"))
    assert (lease.attempt, lease.run.status) == (1, RunStatus.RUNNING)
    assert lease.run.node is not None
    assert lease.run.node.name == "alpha"
    assert kinds(lease.run) == ["queued", "leased"]


def test_a_leased_run_is_not_claimed_again() -> None:
    lease = make.make_lease()
    assert services.run_claim(node=make.make_node(), run_id=lease.run.pk) is None


def test_a_node_claims_only_its_own_capability() -> None:
    make.make_run(queue="sm90")
    assert services.run_claim(node=make.make_node(queue="cpu-interpret")) is None
    assert services.run_claim(node=make.make_node(queue="sm90")) is not None


@pytest.mark.parametrize("status", [NodeStatus.DRAINING, NodeStatus.OFFLINE])
def test_a_node_that_is_not_online_gets_nothing(status: NodeStatus) -> None:
    make.make_run()
    assert services.run_claim(node=make.make_node(status=status)) is None


def test_a_single_submission_is_claimed_before_an_older_campaign() -> None:
    services.campaign_launch(slug="c", title="c", kernels=[make.make_kernel()])
    single = make.make_run()
    lease = services.run_claim(node=make.make_node())
    assert lease is not None
    assert lease.run.pk == single.pk


def test_a_heartbeat_extends_the_lease() -> None:
    lease = make.make_lease()
    expire(lease.run)
    services.run_heartbeat(run_id=lease.run.pk, attempt=lease.attempt)
    assert services.run_requeue_expired() == []


def test_an_expired_lease_is_queued_again_with_its_reason() -> None:
    lease = make.make_lease()
    expire(lease.run)
    (run,) = services.run_requeue_expired()
    assert (run.status, run.node, run.lost_attempts) == (RunStatus.QUEUED, None, 1)
    assert kinds(run) == ["queued", "leased", "attempt_lost", "requeued"]
    assert "no heartbeat" in Event.objects.get(run=run, kind="requeued").payload["reason"]


def test_a_run_that_is_lost_too_often_errors_and_has_no_verdict() -> None:
    run = make.make_run(max_attempts=2)
    for _ in range(2):
        make.make_lease(run)
        expire(run)
        services.run_requeue_expired()
    run.refresh_from_db()
    assert (run.status, run.error_kind) == (RunStatus.ERRORED, ErrorKind.LOST)
    assert not Verdict.objects.filter(run=run).exists()


def test_a_stale_attempt_may_not_write() -> None:
    old = make.make_lease()
    expire(old.run)
    services.run_requeue_expired()
    make.make_lease(old.run)
    verdict = make.verdict_record(old.run)
    with pytest.raises(services.FencedError):
        services.run_heartbeat(run_id=old.run.pk, attempt=old.attempt)
    with pytest.raises(services.FencedError):
        services.run_event_append(
            run_id=old.run.pk, attempt=old.attempt, first=0, happened=[log("late")]
        )
    with pytest.raises(services.FencedError):
        services.run_finish(run_id=old.run.pk, attempt=old.attempt, verdict=verdict)
    assert not services.run_release(run_id=old.run.pk, attempt=old.attempt, reason="late")


def test_a_finished_run_has_one_verdict_with_twelve_gates() -> None:
    run = make.make_finished(failed=("G4",))
    verdict = run.verdict
    assert (run.status, verdict.outcome, verdict.illusion) == (RunStatus.FINISHED, "rejected", True)
    assert verdict.gates.count() == 12
    assert kinds(run)[-2:] == ["verdict", "finished"]


def test_the_same_verdict_posted_twice_is_stored_once() -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(lease.run)
    first, second = (
        services.run_finish(run_id=lease.run.pk, attempt=lease.attempt, verdict=verdict)
        for _ in range(2)
    )
    assert first.pk == second.pk
    assert kinds(lease.run).count("finished") == 1


def test_another_verdict_for_a_finished_run_is_refused() -> None:
    run = make.make_finished()
    other = make.verdict_record(run, failed=("G1",))
    with pytest.raises(services.FencedError):
        services.run_finish(run_id=run.pk, attempt=run.attempt, verdict=other)


def test_a_verdict_about_another_kernel_is_refused() -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(make.make_run(make.make_kernel(lease.run.task)))
    with pytest.raises(services.VerdictMismatchError, match="kernel sha256"):
        services.run_finish(run_id=lease.run.pk, attempt=lease.attempt, verdict=verdict)


def test_infrastructure_errors_are_retried_then_errored_and_judge_nothing() -> None:
    run = make.make_run(max_attempts=2)
    for _ in range(2):
        lease = make.make_lease(run)
        ended = services.run_error(
            run_id=run.pk, attempt=lease.attempt, kind=ErrorKind.INFRASTRUCTURE, message="no GPU"
        )
    assert (ended.status, ended.error_kind) == (RunStatus.ERRORED, "infrastructure")
    assert ended.error_message == "attempt 2: no GPU"


def test_an_error_reported_twice_costs_one_attempt() -> None:
    lease = make.make_lease()
    for _ in range(2):
        run = services.run_error(
            run_id=lease.run.pk, attempt=1, kind=ErrorKind.INFRASTRUCTURE, message="no GPU"
        )
    assert (run.status, run.lost_attempts) == (RunStatus.QUEUED, 1)


def test_a_task_that_cannot_be_judged_is_not_retried() -> None:
    lease = make.make_lease()
    run = services.run_error(
        run_id=lease.run.pk, attempt=1, kind=ErrorKind.TASK, message="reference raises"
    )
    assert (run.status, run.error_message) == (RunStatus.ERRORED, "reference raises")


def test_a_lease_that_is_given_back_costs_no_attempt() -> None:
    lease = make.make_lease()
    assert services.run_release(run_id=lease.run.pk, attempt=1, reason="node stops")
    lease.run.refresh_from_db()
    assert (lease.run.status, lease.run.lost_attempts) == (RunStatus.QUEUED, 0)
    assert make.make_lease(lease.run).attempt == 2


def test_a_queued_run_is_cancelled_at_once() -> None:
    run = make.make_run()
    assert services.run_cancel(run=run, by="alice")
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert kinds(run) == ["queued", "cancel_requested", "cancelled"]


def test_the_node_of_a_cancelled_run_is_told_by_its_heartbeat_and_by_its_events() -> None:
    lease = make.make_lease()
    services.run_cancel(run=lease.run)
    assert services.run_heartbeat(run_id=lease.run.pk, attempt=1).cancelled
    assert services.run_event_append(
        run_id=lease.run.pk, attempt=1, first=0, happened=[log("on")]
    ).cancelled


def test_a_verdict_that_comes_after_the_cancel_is_refused() -> None:
    lease = make.make_lease()
    services.run_cancel(run=lease.run)
    verdict = make.verdict_record(lease.run)
    with pytest.raises(services.FencedError):
        services.run_finish(run_id=lease.run.pk, attempt=1, verdict=verdict)


def test_an_ended_run_cannot_be_cancelled() -> None:
    assert not services.run_cancel(run=make.make_finished())


def test_a_batch_of_events_posted_twice_is_stored_once_and_in_order() -> None:
    lease = make.make_lease()
    batch = [log("a"), log("b")]
    for _ in range(2):
        receipt = services.run_event_append(run_id=lease.run.pk, attempt=1, first=0, happened=batch)
    assert receipt.received == 2
    assert kinds(lease.run) == ["queued", "leased", "log", "log"]


def test_a_batch_that_overlaps_stores_only_what_is_new() -> None:
    lease = make.make_lease()
    services.run_event_append(run_id=lease.run.pk, attempt=1, first=0, happened=[log("a")])
    services.run_event_append(
        run_id=lease.run.pk, attempt=1, first=0, happened=[log("a"), log("b")]
    )
    stored = Event.objects.filter(run=lease.run, kind="log").order_by("seq")
    assert [event.payload["text"] for event in stored] == ["a", "b"]


def test_a_batch_that_leaves_a_gap_says_where_to_resume() -> None:
    lease = make.make_lease()
    with pytest.raises(services.EventGapError) as gap:
        services.run_event_append(run_id=lease.run.pk, attempt=1, first=3, happened=[log("d")])
    assert gap.value.expected == 0


def test_a_new_attempt_numbers_its_events_from_zero() -> None:
    lease = make.make_lease()
    services.run_event_append(run_id=lease.run.pk, attempt=1, first=0, happened=[log("a")])
    services.run_release(run_id=lease.run.pk, attempt=1, reason="node stops")
    again = make.make_lease(lease.run)
    receipt = services.run_event_append(
        run_id=lease.run.pk, attempt=again.attempt, first=0, happened=[log("b")]
    )
    assert receipt.received == 1


def test_event_numbers_have_no_gaps() -> None:
    run = make.make_finished()
    numbers = Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True)
    assert list(numbers) == list(range(1, run.last_seq + 1))


def test_what_a_kernel_prints_is_stored_even_with_nul_and_surrogates() -> None:
    lease = make.make_lease()
    services.run_event_append(run_id=lease.run.pk, attempt=1, first=0, happened=[log("a\0b\ud800")])
    assert Event.objects.get(run=lease.run, kind="log").payload["text"] == "a\\x00b\ufffd"


def test_an_agent_that_starts_afresh_gives_back_what_it_had_leased() -> None:
    node = make.make_node()
    lease = make.make_lease(node=node)
    services.node_register(node=node, queue="sm90", environment=make.environment_record())
    lease.run.refresh_from_db()
    assert (lease.run.status, node.queue) == (RunStatus.QUEUED, "sm90")


def test_a_node_that_says_goodbye_is_offline_and_holds_nothing() -> None:
    node = make.make_node()
    lease = make.make_lease(node=node)
    services.node_offline(node=node)
    lease.run.refresh_from_db()
    node.refresh_from_db()
    assert (lease.run.status, node.status) == (RunStatus.QUEUED, NodeStatus.OFFLINE)


def test_a_silent_node_is_shown_offline_until_it_answers() -> None:
    node = make.make_node(last_seen_at=timezone.now() - timedelta(minutes=5))
    assert services.nodes_mark_silent() == 1
    node.refresh_from_db()
    services.node_seen(node=node)
    node.refresh_from_db()
    assert node.status == NodeStatus.ONLINE


def test_a_verdict_in_which_a_gate_broke_is_never_stored() -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(lease.run)
    broken = records.GateResult(
        records.GateId.AGREEMENT, records.GateStatus.ERROR, "", reason="KeyError: 'x'"
    )
    with pytest.raises(services.BrokenVerdictError, match="G1: KeyError"):
        services.run_finish(
            run_id=lease.run.pk,
            attempt=1,
            verdict=replace(verdict, gates=(broken, *verdict.gates[1:])),
        )
    assert not Verdict.objects.exists()


def test_a_different_report_of_a_lost_attempt_is_refused() -> None:
    lease = make.make_lease()
    expire(lease.run)
    services.run_requeue_expired()
    with pytest.raises(services.FencedError):
        services.run_error(
            run_id=lease.run.pk, attempt=1, kind=ErrorKind.INFRASTRUCTURE, message="no GPU"
        )


def test_events_of_a_run_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelhub.core.services.lease.EVENTS_PER_RUN", 4)
    lease = make.make_lease()
    batch = [log(str(number)) for number in range(3)]
    with pytest.raises(services.TooManyEventsError):
        services.run_event_append(run_id=lease.run.pk, attempt=1, first=0, happened=batch)
    assert kinds(lease.run) == ["queued", "leased"]


def test_reap_queues_silent_runs_again_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    lease = make.make_lease()
    expire(lease.run)
    Node.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    call_command("reap")
    assert capsys.readouterr().out.splitlines() == [
        f"{lease.run.pk} queued",
        "1 nodes went silent",
    ]
