from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from channels.layers import get_channel_layer
from django.db import connections

from kernelhub.api.longpoll import hints
from kernelhub.core import events, services
from tests import factories as make
from tests.api.caller import Caller, faults, problem


def append(lease: services.Lease, first: int, *texts: str) -> None:
    happened = [events.Log("kernel", text) for text in texts]
    services.run_event_append(
        run_id=lease.run.pk, attempt=lease.attempt, first=first, happened=happened
    )


def kinds(page: Any) -> list[str]:
    return [event["kind"] for event in page["events"]]


@pytest.mark.django_db
def test_events_come_in_order_after_a_number(nobody: Caller) -> None:
    lease = make.make_lease()
    append(lease, 0, "one", "two")
    page = nobody.get(f"runs/{lease.run.pk}/events", after=2).json()
    assert [event["seq"] for event in page["events"]] == [3, 4]
    assert [event["payload"]["text"] for event in page["events"]] == ["one", "two"]
    assert (page["status"], page["last_seq"], page["done"]) == ("running", 4, False)


@pytest.mark.django_db
def test_a_page_is_limited_and_the_last_one_says_done(nobody: Caller) -> None:
    run = make.make_finished()
    path = f"runs/{run.pk}/events"
    page = nobody.get(path, limit=3).json()
    assert (kinds(page), page["done"]) == (["queued", "leased", "verdict"], False)
    page = nobody.get(path, after=3).json()
    assert (kinds(page), page["done"]) == (["finished"], True)


@pytest.mark.django_db
def test_an_ended_run_is_not_waited_for(nobody: Caller) -> None:
    run = make.make_finished()
    started = time.monotonic()
    page = nobody.get(f"runs/{run.pk}/events", after=run.last_seq, wait=20).json()
    assert page["done"]
    assert time.monotonic() - started < 5


@pytest.mark.django_db
def test_waiting_ends_with_an_empty_page_when_nothing_happens(nobody: Caller) -> None:
    run = make.make_run()
    started = time.monotonic()
    page = nobody.get(f"runs/{run.pk}/events", after=1, wait=0.4).json()
    assert (page["events"], page["done"]) == ([], False)
    assert 0.4 <= time.monotonic() - started < 5


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value"),
    [("after", "-1"), ("after", "x"), ("wait", "26"), ("wait", "nan"), ("limit", "0"), ("w", "1")],
)
def test_a_wrong_parameter_is_named(nobody: Caller, name: str, value: str) -> None:
    run = make.make_run()
    document = problem(nobody.get(f"runs/{run.pk}/events", **{name: value}), 400, "invalid-request")
    assert name in faults(document)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("layer", ["working", "broken"])
def test_an_event_ends_the_wait(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    if layer == "broken":
        monkeypatch.setattr("kernelhub.api.longpoll.get_channel_layer", lambda: BrokenLayer())
    lease = make.make_lease()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, nobody, lease.run.pk)
        time.sleep(0.5)
        append(lease, 0, "news")
        assert kinds(waiting.result(timeout=10)) == ["log"]


def ask(caller: Caller, run_id: UUID) -> Any:
    try:
        return caller.get(f"runs/{run_id}/events", after=2, wait=20).json()
    finally:
        connections.close_all()


class BrokenLayer:
    """A channel layer whose Redis is away."""

    async def new_channel(self) -> str:
        raise ConnectionError("Redis is away")


async def test_a_published_change_is_a_hint() -> None:
    layer = get_channel_layer()
    assert layer is not None
    started = time.monotonic()
    async with hints("run.1") as hint:
        await layer.group_send("run.1", {"type": "run.changed", "run": "1", "seq": 1})
        await hint(15.0)
    assert time.monotonic() - started < 10


async def test_without_a_change_the_hint_comes_when_the_time_is_over() -> None:
    started = time.monotonic()
    async with hints("run.1") as hint:
        await hint(0.2)
    assert 0.2 <= time.monotonic() - started < 5
