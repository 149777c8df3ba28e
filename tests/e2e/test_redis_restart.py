"""A browser follows a run while Redis restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from tests.broker import Broker, running_broker
from tests.conftest import short_folder
from tests.e2e.conftest import Hub
from tests.e2e.test_run_live import finish, judge, lease, queued_run, strip_is

pytestmark = pytest.mark.browser


@pytest.fixture
def broker() -> Iterator[Broker]:
    with short_folder("restart") as folder, running_broker(folder) as broker:
        yield broker


@pytest.fixture
def redis_url(broker: Broker) -> str:
    """The hub of this test uses a Redis that can be taken away."""
    return broker.url


async def test_a_page_shows_every_gate_that_was_judged_while_redis_was_away(
    hub: Hub, browser_page: Page, broker: Broker
) -> None:
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await hub.do(judge, run, 1)
    await strip_is(page, "✓···········")

    await asyncio.to_thread(broker.stop)
    await hub.do(judge, run, 2, 3, 4)
    await asyncio.to_thread(broker.start)
    await hub.do(judge, run, 5)
    await strip_is(page, "✓✕✓✓✓·······", timeout_s=20)
    await expect(page.locator("#gate-2")).to_contain_text("first bad index")

    await hub.do(judge, run, *range(6, 13))
    await hub.do(finish, run)
    await expect(page.locator("h1")).to_contain_text("an illusion", timeout=20_000)
    await expect(page.locator("#live")).to_have_text("complete")
    told = page.locator("#events li span:nth-child(2)").filter(has_text="gate ")
    await expect(told).to_have_text([f"gate {number}" for number in range(1, 13)])
