from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from gpu_runner.agent import Agent
from gpu_runner.config import AgentConfig
from gpu_runner.node import node_app
from gpu_runner.protocol import JOB_NAME
from kernelhub.core import events, services
from kernelhub.core.models import Event, Node, Run
from tests import factories as make
from tests.gpu_runner.conftest import (
    FAKE,
    PATIENCE_S,
    StartAgent,
    kernel_that,
    wait_for,
    wait_for_status,
)

REPO = Path(__file__).resolve().parents[2]


def test_a_queued_run_ends_with_its_verdict_and_its_events_in_order(
    start_agent: StartAgent,
) -> None:
    run = make.make_run(kernel_that("REJECT"))
    start_agent()
    wait_for_status(run, "finished")
    assert run.verdict.illusion
    kinds = [event.kind for event in Event.objects.filter(run=run).order_by("seq")]
    assert kinds[:3] == ["queued", "leased", "started"]
    assert kinds[3:-2] == ["gate"] * 12
    assert kinds[-2:] == ["verdict", "finished"]


def test_one_warm_verifier_judges_run_after_run(start_agent: StartAgent) -> None:
    runs = [make.make_run(kernel_that("ACCEPT")) for _ in range(5)]
    start_agent()
    for run in runs:
        assert wait_for_status(run, "finished").verdict.outcome == "accepted"


def test_an_agent_registers_what_its_verifier_says_of_the_device(start_agent: StartAgent) -> None:
    start_agent()
    wait_for(lambda: Node.objects.filter(name="alpha", device_name="fake").exists())
    node = Node.objects.get(name="alpha")
    assert (node.queue, node.mode, node.device_name) == ("cpu-interpret", "cpu-interpret", "fake")


def test_a_cancel_reaches_the_device_and_leaves_the_verifier_warm(start_agent: StartAgent) -> None:
    hangs, follows = make.make_run(kernel_that("HANG")), make.make_run(kernel_that("ACCEPT"))
    agent = start_agent()
    wait_for_status(hangs, "running")
    warm = agent.workers[0]._verifier
    services.run_cancel(run=hangs)
    wait_for_status(follows, "finished")
    assert agent.workers[0]._verifier is warm


def test_a_verifier_that_ignores_a_cancel_is_killed(start_agent: StartAgent) -> None:
    hangs, follows = make.make_run(kernel_that("DEAF")), make.make_run(kernel_that("ACCEPT"))
    agent = start_agent()
    wait_for_status(hangs, "running")
    wait_for(lambda: Event.objects.filter(run=hangs, kind="started").exists())
    first = agent.workers[0]._verifier
    assert first is not None
    services.run_cancel(run=hangs)
    wait_for_status(follows, "finished")
    assert not first.alive
    with pytest.raises(ProcessLookupError):
        os.killpg(first.pid, 0)


@pytest.mark.parametrize(
    ("does", "reason"),
    [("CRASH", "exit code 9"), ("GARBAGE", "no protocol line"), ("BROKEN", "no GPU")],
)
def test_a_broken_verifier_is_an_infrastructure_error_and_no_verdict(
    start_agent: StartAgent, does: str, reason: str
) -> None:
    run = make.make_run(kernel_that(does), max_attempts=1)
    start_agent()
    wait_for_status(run, "errored")
    assert run.error_kind == "infrastructure"
    assert reason in run.error_message


def test_a_gate_that_broke_is_an_infrastructure_error_and_no_verdict(
    start_agent: StartAgent,
) -> None:
    run = make.make_run(kernel_that("BROKEN-GATE"), max_attempts=2)
    start_agent()
    wait_for_status(run, "errored")
    assert (run.error_kind, run.attempt) == ("infrastructure", 2)
    assert "G1: KeyError" in run.error_message


def test_what_no_message_can_carry_costs_one_attempt_and_not_the_lease(
    start_agent: StartAgent,
) -> None:
    run = make.make_run(kernel_that("NAN"), max_attempts=1)
    follows = make.make_run(kernel_that("ACCEPT"))
    start_agent()
    wait_for_status(run, "errored")
    assert run.error_kind == "infrastructure"
    wait_for_status(follows, "finished")


def test_a_kernel_may_print_what_is_no_text(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("SURROGATE"))
    start_agent()
    wait_for_status(run, "finished")
    assert Event.objects.get(run=run, kind="log").payload["text"] == "a\ufffdb\\x00c"


def test_a_verifier_of_another_mode_than_the_queue_judges_nothing(
    config: AgentConfig, start_agent: StartAgent
) -> None:
    run = make.make_run(kernel_that("ACCEPT"))
    agent = Agent(config, "sm90")
    assert not agent.workers[0]._make_ready()
    assert agent.workers[0]._verifier is None
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_crash_is_tried_again_on_a_fresh_verifier(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("CRASH"), max_attempts=2)
    start_agent()
    wait_for_status(run, "errored")
    assert run.attempt == 2


def test_a_verifier_that_reports_a_broken_machine_is_replaced(start_agent: StartAgent) -> None:
    broken = make.make_run(kernel_that("BROKEN"), max_attempts=1)
    agent = start_agent()
    wait_for(lambda: agent.workers[0]._verifier is not None)
    first = agent.workers[0]._verifier
    wait_for_status(broken, "errored")
    wait_for_status(make.make_run(kernel_that("ACCEPT")), "finished")
    assert agent.workers[0]._verifier is not first


def test_a_hub_that_is_not_there_yet_costs_no_warm_verifier(start_agent: StartAgent) -> None:
    agent = start_agent(hub_url="http://127.0.0.1:9")
    wait_for(
        lambda: (
            agent.workers[0]._verifier is not None and agent.workers[0]._verifier.health is not None
        )
    )
    warm = agent.workers[0]._verifier
    time.sleep(0.5)
    assert agent.workers[0]._verifier is warm


def test_the_run_after_a_crash_is_judged(start_agent: StartAgent) -> None:
    make.make_run(kernel_that("CRASH"), max_attempts=1)
    follows = make.make_run(kernel_that("ACCEPT"))
    start_agent()
    wait_for_status(follows, "finished")


def test_a_bad_task_is_not_tried_again(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("BAD-TASK"))
    start_agent()
    wait_for_status(run, "errored")
    assert (run.error_kind, run.error_message, run.attempt) == ("task", "bad task mend", 1)


def test_a_run_that_overruns_the_wall_time_is_stopped(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("DEAF"), max_attempts=1)
    start_agent(wall_s=1.0)
    wait_for_status(run, "errored")
    assert "longer than 1 s" in run.error_message


def test_what_a_kernel_prints_is_bounded(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("CHATTY"))
    start_agent()
    wait_for_status(run, "finished")
    logs = Event.objects.filter(run=run, kind="log").order_by("seq")
    assert [event.payload["text"][:7] for event in logs[:2]] == ["line 0 ", "line 1 "]
    assert sum(len(event.payload["text"]) for event in logs) < 250_000


def test_stopping_gives_the_lease_back_at_once(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("HANG"))
    agent = start_agent()
    wait_for_status(run, "running")
    agent.stop()
    wait_for_status(run, "queued")
    assert run.lost_attempts == 0
    wait_for(lambda: Node.objects.get(name="alpha").status == "offline")


def test_a_verifier_that_cannot_start_costs_no_run_an_attempt(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("ACCEPT"))
    start_agent(verifier=(*FAKE, "dies"))
    time.sleep(1.5)
    run.refresh_from_db()
    assert (run.status, run.attempt) == ("queued", 0)


def test_a_lost_lease_stops_the_device(start_agent: StartAgent) -> None:
    run = make.make_run(kernel_that("HANG"))
    start_agent()
    wait_for_status(run, "running")
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=past, requested_queue="elsewhere")
    wait_for(lambda: bool(services.run_requeue_expired()) or run.status == "queued")
    follows = make.make_run(kernel_that("ACCEPT"))
    wait_for_status(follows, "finished")


@contextmanager
def _agent_process(
    config: AgentConfig,
    broker_url: str = "",
    poll_s: float = 0.1,
    before: str = "",
    workers: int = 1,
) -> Iterator[subprocess.Popen[bytes]]:
    """An agent in a process of its own; SIGKILL ends it with the block, if it has not ended.
    ``before`` is done to ``agent`` before it runs."""
    script = (
        "import sys; from pathlib import Path; from gpu_runner.agent import Agent;"
        "from gpu_runner.config import AgentConfig; from gpu_runner.node import agent_run;"
        f"agent = Agent(AgentConfig(hub_url={config.hub_url!r}, token={config.token!r},"
        f" broker_url={broker_url!r}, device='cpu', scratch=Path({str(config.scratch)!r}),"
        f" verifier={config.verifier!r}, poll_s={poll_s},"
        f" workers={workers}),"
        f" 'cpu-interpret'); {before or 'pass'}; agent_run(agent);"
        "sys.exit('torch' in sys.modules or 'kernelhub.core.models' in sys.modules)"
    )
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "kernelhub.settings.local"}
    environ.pop("DATABASE_URL", None)
    process = subprocess.Popen([sys.executable, "-c", script], cwd=REPO, env=environ)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_agent_that_is_killed_mid_run_loses_no_run_and_judges_none_twice(
    config: AgentConfig,
) -> None:
    run = make.make_run(kernel_that("HANG"))
    with _agent_process(config):
        wait_for(lambda: Event.objects.filter(run=run, kind="started").exists())
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    services.run_requeue_expired()
    finished = make.make_finished(Run.objects.get(pk=run.pk), make.make_node("beta"))
    assert (finished.attempt, finished.lost_attempts) == (2, 1)
    assert Event.objects.filter(run=run, kind=events.EventKind.FINISHED.value).count() == 1


def test_an_agent_that_is_killed_and_started_again_judges_its_run_at_once(
    config: AgentConfig, start_agent: StartAgent
) -> None:
    run = make.make_run(kernel_that("ONCE-HANG"))
    with _agent_process(config):
        wait_for(lambda: Event.objects.filter(run=run, kind="started").exists())
    start_agent()
    wait_for_status(run, "finished")
    assert (run.attempt, run.lost_attempts) == (2, 1)
    assert Event.objects.filter(run=run, kind="verdict").count() == 1


def test_without_its_broker_an_agent_polls_and_still_stops_at_sigterm(config: AgentConfig) -> None:
    run = make.make_run(kernel_that("ACCEPT"))
    with _agent_process(config, "redis://127.0.0.1:1/0") as process:
        wait_for_status(run, "finished")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("broker", ["dead", "alive"])
def test_a_signal_that_came_before_celery_listened_still_stops_the_process(
    config: AgentConfig, redis_url: str, broker: str
) -> None:
    url = redis_url if broker == "alive" else "redis://127.0.0.1:1/0"
    with _agent_process(config, url, before="agent.stop()") as process:
        assert process.wait(timeout=PATIENCE_S) == 0


def test_an_agent_without_torch_and_database_stops_at_sigterm(config: AgentConfig) -> None:
    run = make.make_run(kernel_that("HANG"))
    with _agent_process(config) as process:
        wait_for_status(run, "running")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0
    wait_for_status(run, "queued")


def test_a_broker_message_wakes_an_idle_agent_and_sigterm_stops_it(
    config: AgentConfig, redis_url: str
) -> None:
    with _agent_process(config, redis_url, poll_s=600.0) as process:
        wait_for(lambda: Node.objects.filter(name="alpha", device_name="fake").exists())
        time.sleep(1.0)  # its first poll is over; the next one comes after ten minutes
        run = make.make_run(kernel_that("ACCEPT"))
        with node_app(redis_url) as app:
            app.send_task(JOB_NAME, args=[str(run.pk)], queue="cpu-interpret")
        wait_for_status(run, "finished")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0
