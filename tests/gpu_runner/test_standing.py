"""A node whose device cannot be trusted leaves service, says why, and comes back."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from gpu_runner.agent import Agent
from gpu_runner.config import AgentConfig
from gpu_runner.hub import HubUnreachableError
from gpu_runner.protocol import HealthNotice
from gpu_runner.protocol import Standing as Answer
from gpu_runner.standing import STRIKES_MAX, Standing
from kernelhub.core import services
from kernelhub.core.choices import NodeStatus
from kernelhub.core.models import Node
from tests import factories as make
from tests.gpu_runner.conftest import FAKE, StartAgent, kernel_that, wait_for, wait_for_status
from verifier.records import HealthCheck, HealthReport, HealthState

AILING = (*FAKE, "ailing")
SICK = HealthReport("start", (HealthCheck("answer", HealthState.SICK, "wrong"),))


class FakeHub:
    """Answers as it is told, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[HealthNotice] = []
        self.answer = Answer(in_service=True)
        self.silent = False

    def health(self, notice: HealthNotice) -> Answer:
        if self.silent:
            raise HubUnreachableError("nobody there")
        self.told.append(notice)
        return self.answer


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def standing(hub: Any) -> Standing:
    return Standing(hub, threading.Event(), rest_s=60.0)


def strike_out(standing: Standing) -> None:
    for _ in range(STRIKES_MAX):
        standing.strike("the device is sick: wrong", SICK)


def node() -> Node:
    return Node.objects.get(name="alpha")


# -- the ledger ----------------------------------------------------------------------------------


def test_strikes_in_a_row_take_the_node_out_of_service(standing: Standing) -> None:
    standing.strike("one")
    standing.strike("two")
    assert standing.in_service
    standing.strike("three")
    assert (standing.in_service, standing.reason) == (False, "three")


def test_a_judged_run_wipes_strikes_out(standing: Standing) -> None:
    for _ in range(3 * STRIKES_MAX):
        standing.strike("now and then")
        standing.judged()
    assert standing.in_service


def test_a_device_that_fails_in_runs_is_out_after_two_of_them(standing: Standing) -> None:
    standing.strike("in a run", SICK, heavy=True)
    assert standing.in_service
    standing.strike("in a run", SICK, heavy=True)
    assert not standing.in_service


def test_the_hub_is_told_once_and_then_only_now_and_then(standing: Standing, hub: FakeHub) -> None:
    strike_out(standing)
    hub.answer = Answer(in_service=False)
    for _ in range(5):
        standing.tell()
    assert hub.told == [HealthNotice(False, "the device is sick: wrong", SICK)]


def test_a_hub_that_was_away_hears_of_it_later(
    standing: Standing, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike_out(standing)
    hub.silent = True
    with pytest.raises(HubUnreachableError):
        standing.tell()
    hub.silent = False
    monkeypatch.setattr(standing, "_tell_at", 0.0)
    standing.tell()
    assert hub.told[0].report == SICK


def test_no_examination_before_the_rest_is_over(standing: Standing) -> None:
    strike_out(standing)
    with standing.examination() as mine:
        assert not mine


def test_each_rest_is_twice_as_long_as_the_one_before(standing: Standing) -> None:
    strike_out(standing)
    rests = []
    for _ in range(6):
        rests.append(round((standing._examine_at - time.monotonic()) / 60.0))
        standing.strike("still sick")
    assert rests == [1, 2, 4, 8, 10, 10]


def test_only_one_worker_examines_at_a_time(hub: Any) -> None:
    standing = Standing(hub, threading.Event(), rest_s=0.0)
    strike_out(standing)
    with standing.examination() as first, standing.examination() as second:
        assert (first, second) == (True, False)


def test_an_operator_is_not_kept_waiting_by_the_rest(standing: Standing, hub: FakeHub) -> None:
    strike_out(standing)
    hub.answer = Answer(in_service=False, retest=True)
    standing.tell()
    with standing.examination() as mine:
        assert mine


def test_it_returns_on_probation(standing: Standing) -> None:
    strike_out(standing)
    standing.return_ask(None)
    assert standing.in_service
    standing.strike("again")
    assert not standing.in_service


def test_it_stays_out_when_the_hub_says_so(standing: Standing, hub: FakeHub) -> None:
    strike_out(standing)
    hub.answer = Answer(in_service=False, held=True)
    standing.return_ask(None)
    assert not standing.in_service


def test_while_in_doubt_verifiers_start_one_at_a_time(standing: Standing) -> None:
    standing.strike("one")
    inside, most = 0, 0

    def start() -> None:
        nonlocal inside, most
        with standing.in_turn():
            inside += 1
            most = max(most, inside)
            time.sleep(0.05)
            inside -= 1

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


# -- a real agent, a real hub, a fake verifier ---------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses after faults, and the hub is asked at once."""
    monkeypatch.setattr("gpu_runner.worker.BACKOFF_MAX_S", 0.05)
    monkeypatch.setattr("gpu_runner.standing.TELL_EVERY_S", 0.1)


def out_of_service() -> bool:
    return Node.objects.filter(name="alpha", status=NodeStatus.SICK).exists()


@pytest.mark.usefixtures("impatient")
def test_a_node_whose_device_stays_sick_leaves_service_and_says_why(
    config: AgentConfig, start_agent: StartAgent
) -> None:
    config.scratch.mkdir(parents=True)
    (config.scratch / "ailing").touch()
    run = make.make_run(kernel_that("ACCEPT"))
    start_agent(verifier=AILING, rest_s=600.0)
    wait_for(out_of_service)
    assert node().health_reason == "the device is sick: 7 integers came out wrong"
    assert node().health["checks"][0]["state"] == "sick"
    run.refresh_from_db()
    assert (run.status, run.attempt) == ("queued", 0)
    assert (config.scratch / "examined").read_text() == "x" * STRIKES_MAX


@pytest.mark.usefixtures("impatient")
def test_it_comes_back_when_a_later_examination_passes(
    config: AgentConfig, start_agent: StartAgent
) -> None:
    config.scratch.mkdir(parents=True)
    (config.scratch / "ailing").touch()
    run = make.make_run(kernel_that("ACCEPT"))
    start_agent(verifier=AILING, rest_s=0.2)
    wait_for(out_of_service)
    (config.scratch / "ailing").unlink()
    wait_for_status(run, "finished")
    assert (node().status, node().health_reason) == ("online", "")


@pytest.mark.usefixtures("impatient")
def test_a_device_that_fails_in_runs_costs_two_attempts_and_then_the_node_is_out(
    start_agent: StartAgent,
) -> None:
    run = make.make_run(kernel_that("SICK"), max_attempts=3)
    start_agent(rest_s=600.0)
    wait_for(out_of_service)
    run.refresh_from_db()
    assert (run.status, run.lost_attempts) == ("queued", 2)
    assert "7 integers" in node().health_reason


@pytest.mark.usefixtures("impatient")
def test_an_operator_brings_a_node_back_that_rests(
    config: AgentConfig, start_agent: StartAgent
) -> None:
    config.scratch.mkdir(parents=True)
    (config.scratch / "ailing").touch()
    start_agent(verifier=AILING, rest_s=600.0)
    wait_for(out_of_service)
    (config.scratch / "ailing").unlink()
    assert services.node_retest(node=node())
    wait_for(lambda: node().status == NodeStatus.ONLINE)


@pytest.mark.usefixtures("impatient")
def test_a_new_agent_of_a_node_that_is_out_examines_and_returns_it(
    start_agent: StartAgent,
) -> None:
    services.node_sick(node=node(), reason="the device is sick: wrong")
    run = make.make_run(kernel_that("ACCEPT"))
    start_agent(rest_s=600.0)
    wait_for_status(run, "finished")
    assert node().status == NodeStatus.ONLINE


@pytest.mark.usefixtures("impatient")
def test_a_node_that_left_too_often_is_not_returned_by_a_new_agent(
    start_agent: StartAgent,
) -> None:
    for _ in range(3):
        services.node_sick(node=node(), reason="the device is sick: wrong")
        services.node_well(node=node())
    assert node().status == NodeStatus.SICK
    run = make.make_run(kernel_that("ACCEPT"))
    agent: Agent = start_agent(rest_s=0.2)
    wait_for(lambda: not agent.standing.in_service)
    time.sleep(1.0)
    run.refresh_from_db()
    assert (run.status, node().status) == ("queued", NodeStatus.SICK)
    services.node_retest(node=node())
    wait_for_status(run, "finished")


def test_a_verifier_that_never_starts_takes_the_node_out_of_service_too(
    start_agent: StartAgent, impatient: None
) -> None:
    start_agent(verifier=(*FAKE, "dies"), rest_s=600.0)
    wait_for(out_of_service)
    assert "no torch here" in node().health_reason
