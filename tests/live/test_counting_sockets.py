"""The sockets of pages that count: the overview and a campaign."""

from __future__ import annotations

import asyncio

from channels.db import database_sync_to_async

from kernelhub.core import events, services
from kernelhub.core.models import Campaign, Run
from kernelhub.live.consumers import NOT_FOUND
from tests.live.conftest import Open, post
from tests.live.socket import Socket
from tests.web import samples


async def messages_within(socket: Socket, seconds: float) -> list[dict[str, object]]:
    """What arrives in that time."""
    found = []
    while not await socket.is_silent(seconds):
        found.append(await socket.said())
    return found


async def test_the_overview_says_where_runs_stand_at_once(run: Run, open_socket: Open) -> None:
    standing = (await (await open_socket("/ws/overview/")).said())["standing"]
    assert (standing["running"], standing["queued"]) == (1, 0)


async def test_the_overview_is_told_of_a_change(run: Run, open_socket: Open) -> None:
    socket = await open_socket("/ws/overview/")
    await socket.said()
    await database_sync_to_async(services.run_cancel)(run=run)
    assert (await socket.said())["standing"]["cancelled"] == 1


async def test_a_burst_of_changes_is_a_few_messages(run: Run, open_socket: Open) -> None:
    socket = await open_socket("/ws/overview/")
    await socket.said()
    for number in range(40):
        await post(run, events.Log("kernel", str(number)))
    messages = await messages_within(socket, 0.8)
    assert 1 <= len(messages) < 20
    latest = messages[-1]["standing"]
    assert isinstance(latest, dict)
    assert latest["event"] >= 42


async def test_nothing_is_said_while_nothing_changes(run: Run, open_socket: Open) -> None:
    socket = await open_socket("/ws/overview/")
    await socket.said()
    await asyncio.sleep(0.5)
    assert await socket.is_silent(0.5)


async def test_a_campaign_says_how_far_it_is(transactional_db: None, open_socket: Open) -> None:
    campaign, run = await database_sync_to_async(_campaign)()
    socket = await open_socket(f"/ws/campaigns/{campaign.pk}/")
    assert (await socket.said())["standing"]["queued"] == 2
    await database_sync_to_async(services.run_cancel)(run=run)
    assert (await socket.said())["standing"] == {
        "queued": 1,
        "running": 0,
        "finished": 0,
        "errored": 0,
        "cancelled": 1,
    }


def _campaign() -> tuple[Campaign, Run]:
    task = samples.suite_load()[0]
    kernels = [samples.kernel_of(task, name) for name in ("one", "two")]
    campaign, runs = services.campaign_launch(slug="small", title="Small", kernels=kernels)
    return campaign, runs[0]


async def test_a_campaign_that_does_not_exist_is_closed_for_good(
    transactional_db: None, open_socket: Open
) -> None:
    socket = await open_socket("/ws/campaigns/00000000-0000-0000-0000-000000000000/")
    assert await socket.closed_with() == NOT_FOUND
