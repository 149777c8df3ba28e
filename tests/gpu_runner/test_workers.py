"""Several verifiers of one agent, side by side."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpu_runner.capacity import GIB, memory_bytes, workers_default, workers_wanted
from gpu_runner.config import AgentConfig, ConfigError
from kernelhub.core import services
from kernelhub.core.models import Event, Node, Run
from tests import factories as make
from tests.gpu_runner.conftest import (
    PATIENCE_S,
    StartAgent,
    kernel_that,
    wait_for,
    wait_for_status,
)
from tests.gpu_runner.test_agent import _agent_process


def started(*runs: Run) -> None:
    for run in runs:
        wait_for(lambda run=run: Event.objects.filter(run=run, kind="started").exists())  # type: ignore[misc]


def test_two_runs_are_judged_at_the_same_time(start_agent: StartAgent) -> None:
    runs = [make.make_run(kernel_that(f"TOGETHER {n}")) for n in range(2)]
    start_agent(workers=2)
    for run in runs:
        assert wait_for_status(run, "finished").verdict.outcome == "accepted"


def test_many_runs_are_each_judged_once(start_agent: StartAgent) -> None:
    runs = [make.make_run(kernel_that(f"ACCEPT {n}")) for n in range(12)]
    start_agent(workers=3)
    for run in runs:
        wait_for_status(run, "finished")
    assert {run.attempt for run in runs} == {1}


def test_a_cancelled_run_leaves_its_neighbour_alone(start_agent: StartAgent) -> None:
    hangs, stays = (make.make_run(kernel_that(f"HANG {n}")) for n in range(2))
    agent = start_agent(workers=2)
    started(hangs, stays)
    services.run_cancel(run=hangs)
    follows = make.make_run(kernel_that("ACCEPT"))
    wait_for_status(follows, "finished")
    stays.refresh_from_db()
    assert (stays.status, stays.attempt) == ("running", 1)
    assert all(worker._verifier is not None for worker in agent.workers)


def test_a_worker_that_restarts_its_verifier_takes_no_lease_of_a_neighbour_back(
    start_agent: StartAgent,
) -> None:
    stays = make.make_run(kernel_that("HANG"))
    start_agent(workers=2)
    started(stays)
    crashes = make.make_run(kernel_that("CRASH"), max_attempts=1)
    wait_for_status(crashes, "errored")
    wait_for_status(make.make_run(kernel_that("ACCEPT")), "finished")
    stays.refresh_from_db()
    assert (stays.status, stays.attempt, stays.lost_attempts) == ("running", 1, 0)


def test_stopping_gives_every_lease_back(start_agent: StartAgent) -> None:
    runs = [make.make_run(kernel_that(f"HANG {n}")) for n in range(3)]
    agent = start_agent(workers=3)
    started(*runs)
    agent.stop()
    for run in runs:
        wait_for_status(run, "queued")
        assert run.lost_attempts == 0
    wait_for(lambda: Node.objects.get(name="alpha").status == "offline")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_workers_and_their_verifiers(
    config: AgentConfig, number: signal.Signals
) -> None:
    runs = [make.make_run(kernel_that(f"HANG {n}")) for n in range(2)]
    with _agent_process(config, workers=2) as process:
        started(*runs)
        children = children_of(process.pid)
        assert len(children) == 2
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == 0
    for run in runs:
        wait_for_status(run, "queued")
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_agent_that_is_killed_leaves_no_verifier_behind(config: AgentConfig) -> None:
    runs = [make.make_run(kernel_that(f"HANG {n}")) for n in range(2)]
    with _agent_process(config, workers=2) as process:
        started(*runs)
        children = children_of(process.pid)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.parametrize(
    ("queue", "cores", "gib", "workers"),
    [
        ("cpu-interpret", 64, 512, 1),
        ("sm90", 16, 128, 8),
        ("sm90", 64, 512, 8),
        ("sm90", 8, 512, 4),
        ("sm90", 16, 24, 3),
        ("sm90", 1, 2, 1),
    ],
)
def test_the_usual_number_of_workers_follows_cores_and_memory(
    queue: str, cores: int, gib: int, workers: int
) -> None:
    assert workers_default(queue, cores=cores, memory_bytes=gib * GIB) == workers


def test_a_control_group_bounds_the_memory(tmp_path: Path) -> None:
    meminfo, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    meminfo.write_text("MemTotal:       65536 kB\nMemFree: 1 kB\n")
    limit.write_text("max\n")
    assert memory_bytes((limit,), meminfo) == 64 << 20
    limit.write_text(f"{16 << 20}\n")
    assert memory_bytes((limit, tmp_path / "absent"), meminfo) == 16 << 20


def test_a_senseless_number_of_workers_is_refused() -> None:
    with pytest.raises(ConfigError, match="-1"):
        workers_wanted(-1, "sm90")


def test_a_wish_beyond_the_memory_is_granted_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert workers_wanted(10_000, "sm90") == 10_000
    assert "10000 workers may need" in caplog.text
