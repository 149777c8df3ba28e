"""A node agent against a real hub: live server, real database, fake verifier."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.agent import Agent
from gpu_runner.config import AgentConfig
from kernelhub.accounts.services import node_token_create
from kernelhub.core.models import Kernel, Run
from tests import factories as make

FAKE = (sys.executable, str(Path(__file__).parent / "fake_verifier.py"))
PATIENCE_S = 60.0
"""Generous: it is waited out only by a test that fails, also on a machine that is busy."""


def wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.05)


def wait_for_status(run: Run, status: str) -> Run:
    def there() -> bool:
        run.refresh_from_db()
        return run.status == status

    wait_for(there)
    return run


def kernel_that(does: str) -> Kernel:
    """A kernel whose text tells the fake verifier what to do with it."""
    return make.make_kernel(source=f"# {does} {make.make_suite().slug}\n")


@pytest.fixture
def config(transactional_db: None, live_server: Any, tmp_path: Path) -> AgentConfig:
    """The configuration of a freshly admitted node."""
    node = make.make_node("alpha", queue="", status="offline")
    return AgentConfig(
        hub_url=live_server.url,
        token=node_token_create(node=node).text,
        broker_url="",
        device="cpu",
        scratch=tmp_path / "node",
        verifier=FAKE,
        poll_s=0.1,
    )


StartAgent = Callable[..., Agent]


@pytest.fixture
def start_agent(config: AgentConfig) -> Iterator[StartAgent]:
    """Starts agents in threads of this process, with changed fields of the configuration."""
    started: list[tuple[Agent, threading.Thread]] = []

    def start(**changed: Any) -> Agent:
        agent = Agent(replace(config, **changed), "cpu-interpret")
        thread = threading.Thread(target=agent.serve)
        thread.start()
        started.append((agent, thread))
        return agent

    yield start
    for agent, _ in started:
        agent.stop()
    for _, thread in started:
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive(), "the agent does not stop"
