"""A node leaves service by itself, says why, and comes back, but not again and again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from kernelhub.core import services
from kernelhub.core.choices import NodeStatus
from kernelhub.core.models import Event, Node
from tests import factories as make
from verifier.records import HealthCheck, HealthReport, HealthState, from_json

pytestmark = pytest.mark.django_db

WHY = "the device is sick: 7 integers came out wrong"
SICK = HealthReport("start", (HealthCheck("answer", HealthState.SICK, "wrong"),))
GOOD = HealthReport("start", (HealthCheck("answer", HealthState.GOOD),))


def leave(node: Node, times: int = 1) -> Node:
    """Out of service for so many times, back again in between."""
    for _ in range(times - 1):
        services.node_sick(node=node, reason=WHY, report=SICK)
        services.node_well(node=node)
    return services.node_sick(node=node, reason=WHY, report=SICK)


def test_a_sick_node_says_why_and_is_given_no_run() -> None:
    node = services.node_sick(node=make.make_node(), reason=WHY, report=SICK)
    make.make_run()
    assert (node.status, node.health_reason) == (NodeStatus.SICK, WHY)
    assert from_json(HealthReport, node.health) == SICK
    assert services.run_claim(node=node) is None


def test_what_a_sick_node_holds_is_queued_again_and_costs_no_attempt() -> None:
    node = make.make_node()
    run = make.make_run()
    services.run_claim(node=node, run_id=run.pk)
    services.node_sick(node=node, reason=WHY)
    run.refresh_from_db()
    assert (run.status, run.lost_attempts, run.node) == ("queued", 0, None)
    requeued = Event.objects.get(run=run, kind="requeued")
    assert WHY in requeued.payload["reason"]


def test_the_same_report_again_is_no_second_outage() -> None:
    node = make.make_node()
    for _ in range(3):
        services.node_sick(node=node, reason=WHY, report=SICK)
    assert node.outages == 1


def test_a_repeated_notice_without_a_report_keeps_the_reason() -> None:
    node = services.node_sick(node=make.make_node(), reason=WHY, report=SICK)
    assert services.node_sick(node=node, reason="still out").health_reason == WHY


def test_a_node_that_is_found_healthy_returns() -> None:
    node = leave(make.make_node())
    services.node_well(node=node, report=GOOD)
    assert (node.status, node.health_reason) == (NodeStatus.ONLINE, "")
    assert from_json(HealthReport, node.health) == GOOD


def test_a_node_that_leaves_a_third_time_in_an_hour_waits_for_an_operator() -> None:
    node = leave(make.make_node(), times=3)
    services.node_well(node=node, report=GOOD)
    assert (node.status, services.node_held(node)) == (NodeStatus.SICK, True)
    assert services.node_retest(node=node)
    services.node_well(node=node, report=GOOD)
    assert (node.status, node.outages, node.retest_asked) == (NodeStatus.ONLINE, 0, False)


def test_outages_of_long_ago_do_not_count() -> None:
    node = leave(make.make_node(), times=2)
    services.node_well(node=node)
    Node.objects.update(health_changed_at=timezone.now() - timedelta(hours=2))
    assert services.node_sick(node=node, reason=WHY).outages == 1


def test_an_operator_cannot_return_a_device_that_is_still_sick() -> None:
    node = leave(make.make_node())
    services.node_retest(node=node)
    assert services.node_sick(node=node, reason=WHY, report=SICK).status == NodeStatus.SICK


def test_a_sick_node_stays_sick_when_its_agent_starts_answers_or_stops() -> None:
    node = leave(make.make_node())
    services.node_register(node=node, queue="sm90", environment=make.environment_record())
    Node.objects.update(last_seen_at=None)
    node.refresh_from_db()
    services.node_seen(node=node)
    services.node_offline(node=node)
    node.refresh_from_db()
    assert node.status == NodeStatus.SICK


def test_a_later_registration_takes_no_lease_back() -> None:
    node = make.make_node()
    run = make.make_run()
    services.run_claim(node=node, run_id=run.pk)
    environment = make.environment_record()
    services.node_register(node=node, queue="sm90", environment=environment, afresh=False)
    run.refresh_from_db()
    assert run.status == "running"
    services.node_register(node=node, queue="sm90", environment=environment)
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_healthy_node_is_not_changed_by_being_found_healthy() -> None:
    node = make.make_node(status=NodeStatus.DRAINING)
    assert services.node_well(node=node).status == NodeStatus.DRAINING


def test_the_database_takes_no_sick_node_without_a_reason() -> None:
    node = make.make_node()
    with pytest.raises(IntegrityError, match="node_sick_says_why"), transaction.atomic():
        Node.objects.filter(pk=node.pk).update(status=NodeStatus.SICK)


def test_the_command_asks_a_sick_node_only(capsys: pytest.CaptureFixture[str]) -> None:
    node = make.make_node("alpha")
    with pytest.raises(CommandError, match="not out of service"):
        call_command("node_retest", "alpha")
    with pytest.raises(CommandError, match="no node 'beta'"):
        call_command("node_retest", "beta")
    leave(node)
    call_command("node_retest", "alpha")
    assert WHY in capsys.readouterr().out
    node.refresh_from_db()
    assert node.retest_asked
