"""The command against a live hub, with services in the place of a node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from kernelhub import cli
from kernelhub.accounts.roles import USER_SCOPES, Role
from kernelhub.accounts.services import token_create, user_role_set
from kernelhub.core.models import Run, Task
from tests import factories as make


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither this machine's hub nor its token."""
    for name in ("KERNELHUB_HUB_URL", "KERNELHUB_TOKEN", "KERNELHUB_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KERNELHUB_VAR", str(tmp_path))
    # A wait that a test breaks off shall not occupy the server for long.
    monkeypatch.setattr(cli, "POLL_S", 1)
    cache.clear()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `kernelhub ...` in this process."""

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        try:
            code = cli.main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def task(transactional_db: None) -> Task:
    return make.make_task(make.make_suite("fuzzoracle"), "softmax")


@pytest.fixture
def hub(live_server: LiveServer, task: Task, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub with one task and one submitter, whose token is in the environment."""
    alice = User.objects.create_user("alice")
    user_role_set(user=alice, role=Role.SUBMITTER)
    token = token_create(user=alice, label="cli", scopes=USER_SCOPES).text
    monkeypatch.setenv("KERNELHUB_HUB_URL", live_server.url)
    monkeypatch.setenv("KERNELHUB_TOKEN", token)
    return live_server.url


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "kernel.py"
    path.write_text(make.SOURCE)
    return str(path)


class StubNode:
    """Does to the next queued run what a node would, from a thread of its own."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.stop = threading.Event()

    def will(self, act: Callable[[Run], Any]) -> Future[Any]:
        return self.pool.submit(self._serve, act)

    def _serve(self, act: Callable[[Run], Any]) -> Any:
        try:
            while not self.stop.wait(0.05):
                run = Run.objects.filter(status="queued").first()
                if run is not None:
                    return act(run)
        finally:
            connections.close_all()

    def close(self) -> None:
        self.stop.set()
        self.pool.shutdown()


@pytest.fixture
def node(transactional_db: None) -> Iterator[StubNode]:
    stub = StubNode()
    yield stub
    stub.close()
