"""Fixtures of the socket tests: a run, its node, and sockets that are always closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User

from kernelhub.core import services
from kernelhub.core.models import Run
from kernelhub.live import consumers, hints
from tests.live.socket import Socket
from tests.web import samples

Open = Callable[..., Awaitable[Socket]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The safety poll and the throttle in tenths of a second."""
    monkeypatch.setattr(consumers, "POLL_S", 0.2)
    monkeypatch.setattr(consumers, "QUIET_POLL_S", 0.3)
    monkeypatch.setattr(consumers, "THROTTLE_S", 0.1)
    monkeypatch.setattr(hints, "RETRY_S", 0.1)


@pytest.fixture
def run(transactional_db: None) -> Run:
    """A run that a node holds; nothing is judged yet. Its events so far: queued, leased."""
    task = samples.suite_load()[-1]
    queued = services.run_enqueue(task=task, kernel=samples.kernel_of(task, "live"))
    return samples.run_lease(queued, samples.node_online())


@pytest.fixture
async def open_socket() -> AsyncIterator[Open]:
    """Opens sockets as the given user, and closes them after the test."""
    opened: list[Socket] = []

    async def connect(address: str, user: User | None = None) -> Socket:
        socket = Socket(address, user)
        await socket.connect()
        opened.append(socket)
        return socket

    yield connect
    for socket in opened:
        await socket.disconnect()


async def events_until(socket: Socket, last_seq: int) -> list[dict[str, Any]]:
    """All events up to that number, however they are cut into messages."""
    events: list[dict[str, Any]] = []
    while not events or events[-1]["seq"] < last_seq:
        events += (await socket.said())["events"]
    return events


post = database_sync_to_async(samples.run_post)
finish = database_sync_to_async(services.run_finish)
