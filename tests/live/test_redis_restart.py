"""Redis goes away and comes back while somebody follows a run: no event is lost or told twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from kernelhub.core import events
from kernelhub.core.models import Run
from kernelhub.live import consumers
from tests.broker import Broker, running_broker
from tests.conftest import short_folder
from tests.live.conftest import Open, events_until, post
from tests.web import samples


def gate(number: int) -> events.Gate:
    return events.Gate(samples.gate_results()[number - 1])


@pytest.fixture
def broker(settings: Settings) -> Iterator[Broker]:
    """The channel layer's own Redis, of this one test."""
    with short_folder("restart") as folder, running_broker(folder) as broker:
        layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
        config = {"hosts": [broker.url]}
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": config}}
        yield broker


async def test_nothing_is_lost_and_nothing_told_twice(
    run: Run, open_socket: Open, broker: Broker
) -> None:
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    await post(run, gate(1))
    seen = await events_until(socket, 3)
    broker.stop()
    await post(run, gate(2), gate(3))  # the write does not need the broker
    broker.start()
    await post(run, gate(4))
    seen += await events_until(socket, 6)
    assert [event["seq"] for event in seen] == [3, 4, 5, 6]


async def test_hints_come_again_after_the_restart_and_bring_what_was_missed(
    run: Run, open_socket: Open, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll that makes up for lost hints is switched off: only the new subscription tells."""
    monkeypatch.setattr(consumers, "POLL_S", 60)
    monkeypatch.setattr(consumers, "QUIET_POLL_S", 60)
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    await asyncio.sleep(0.3)  # until it listens
    await post(run, gate(1))
    seen = await events_until(socket, 3)
    broker.stop()
    await post(run, gate(2), gate(3))
    assert await socket.is_silent(0.5)
    broker.start()
    await asyncio.sleep(3)  # until it listens again
    await post(run, gate(4))
    seen += await events_until(socket, 6)
    assert [event["seq"] for event in seen] == [3, 4, 5, 6]
