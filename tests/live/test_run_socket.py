"""The socket of one run: everything, in order, once, whatever happens to the channel layer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import InMemoryChannelLayer
from django.contrib.auth.models import User
from pytest_django import Settings

from kernelhub.core import events
from kernelhub.core.models import Run
from kernelhub.live import consumers
from kernelhub.live.consumers import BATCH, FORBIDDEN, NOT_FOUND, after_of
from tests.live.conftest import Open, events_until, finish, post
from tests.web import samples
from tests.web.conftest import person
from verifier.records import GateId


def logs(count: int) -> list[events.Log]:
    return [events.Log("kernel", f"line {number}") for number in range(count)]


def gate(number: int) -> events.Gate:
    return events.Gate(samples.gate_results()[number - 1])


async def test_a_new_page_gets_all_that_happened(run: Run, open_socket: Open) -> None:
    socket = await open_socket(f"/ws/runs/{run.pk}/")
    message = await socket.said()
    assert [event["kind"] for event in message["events"]] == ["queued", "leased"]
    assert message["seq"] == 2


async def test_a_page_gets_only_what_came_after_its_number(run: Run, open_socket: Open) -> None:
    await post(run, *logs(3))
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=4")
    assert [event["seq"] for event in (await socket.said())["events"]] == [5]


async def test_an_event_is_forwarded_whole(run: Run, open_socket: Open) -> None:
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    await post(run, gate(1))
    (event,) = (await socket.said())["events"]
    assert (event["seq"], event["kind"], event["attempt"]) == (3, "gate", 1)
    assert event["payload"]["gate"] == "G1"
    assert event["payload"]["status"] == "PASS"


async def test_a_hint_brings_the_event_well_before_the_poll_would(
    run: Run, open_socket: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "POLL_S", 60)
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    await asyncio.sleep(0.3)  # until it listens
    await post(run, gate(1))
    assert (await socket.said(5))["seq"] == 3


class DroppingLayer(InMemoryChannelLayer):
    """A layer that takes every message and delivers none."""

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        return None


class BrokenLayer(InMemoryChannelLayer):
    """A layer whose broker is down."""

    async def new_channel(self, prefix: str = "specific") -> str:
        raise ConnectionError("connection refused")

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        raise ConnectionError("connection refused")


@pytest.mark.parametrize("layer", [DroppingLayer, BrokenLayer])
async def test_no_event_is_lost_when_the_channel_layer_loses_all(
    run: Run, open_socket: Open, settings: Settings, layer: type[InMemoryChannelLayer]
) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{__name__}.{layer.__name__}"}}
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    for number in range(1, 13):
        await post(run, gate(number))
    found = await events_until(socket, 14)
    assert [event["payload"]["gate"] for event in found] == [gate.value for gate in GateId]


async def test_a_page_that_reconnects_misses_and_repeats_nothing(
    run: Run, open_socket: Open
) -> None:
    first = await open_socket(f"/ws/runs/{run.pk}/")
    await post(run, gate(1))
    seen = await events_until(first, 3)
    await first.disconnect()
    await post(run, gate(2), gate(3))
    second = await open_socket(f"/ws/runs/{run.pk}/?after={seen[-1]['seq']}")
    await post(run, gate(4))
    seen += await events_until(second, 6)
    assert [event["seq"] for event in seen] == [1, 2, 3, 4, 5, 6]


async def test_a_long_history_comes_in_bounded_messages(run: Run, open_socket: Open) -> None:
    await post(run, *logs(2 * BATCH + 10))
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    sizes = [len((await socket.said())["events"]) for _ in range(3)]
    assert sizes == [BATCH, BATCH, 10]


async def test_a_page_that_does_not_read_holds_one_message_and_not_the_history(
    run: Run, open_socket: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's send waits for a slow reader; nothing else may pile up meanwhile."""
    reading = asyncio.Event()
    sent: list[Any] = []

    async def slow_send(self: Any, content: Any, close: bool = False) -> None:
        sent.append(content)
        await reading.wait()

    monkeypatch.setattr(consumers.RunConsumer, "send_json", slow_send)
    await open_socket(f"/ws/runs/{run.pk}/")
    for number in range(1, 13):
        await post(run, gate(number))
    await asyncio.sleep(0.5)
    assert len(sent) == 1
    reading.set()


async def test_the_end_is_said_once_everything_is(run: Run, open_socket: Open) -> None:
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    gates = samples.gate_results()
    await finish(run_id=run.pk, attempt=1, verdict=samples.verdict_of(run, gates))
    found = await events_until(socket, 4)
    assert [event["kind"] for event in found] == ["verdict", "finished"]
    assert await socket.said() == {"type": "end", "status": "finished"}
    assert await socket.closed_with() == 1000


async def test_a_run_that_had_ended_is_told_and_closed(run: Run, open_socket: Open) -> None:
    verdict = samples.verdict_of(run, samples.gate_results())
    await finish(run_id=run.pk, attempt=1, verdict=verdict)
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=4")
    assert (await socket.said())["type"] == "end"


async def test_a_run_that_does_not_exist_is_closed_for_good(
    transactional_db: None, open_socket: Open
) -> None:
    socket = await open_socket("/ws/runs/00000000-0000-0000-0000-000000000000/")
    assert await socket.closed_with() == NOT_FOUND


async def test_a_stranger_is_refused_where_reading_is_not_public(
    run: Run, open_socket: Open, settings: Settings
) -> None:
    settings.KERNELHUB_PUBLIC_READ = False
    socket = await open_socket(f"/ws/runs/{run.pk}/")
    assert await socket.closed_with() == FORBIDDEN
    viewer: User = await database_sync_to_async(person)("vera", "viewer")
    allowed = await open_socket(f"/ws/runs/{run.pk}/", viewer)
    assert (await allowed.said())["type"] == "events"


async def test_what_a_page_says_is_not_listened_to(run: Run, open_socket: Open) -> None:
    socket = await open_socket(f"/ws/runs/{run.pk}/?after=2")
    await socket.say(text="{not json")
    await socket.say(data=b"\x00" * 1000)
    await post(run, gate(1))
    assert (await socket.said())["seq"] == 3


async def test_a_failure_closes_the_socket_so_that_the_page_comes_again(
    run: Run, open_socket: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError("the database is gone")

    monkeypatch.setattr("kernelhub.live.selectors.run_batch", broken)
    socket = await open_socket(f"/ws/runs/{run.pk}/")
    assert await socket.closed_with() == 1011


@pytest.mark.parametrize(
    ("query", "after"),
    [
        (b"after=7", 7),
        (b"", 0),
        (b"after=", 0),
        (b"after=-1", 0),
        (b"after=1e3", 0),
        (b"after=\xd9\xa3", 0),
        (b"after=99999999999999999999", 0),
        (b"after=1&after=5", 5),
    ],
)
def test_a_number_that_is_none_means_everything(query: bytes, after: int) -> None:
    assert after_of(query) == after
