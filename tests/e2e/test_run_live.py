"""A run goes live in a browser, step by step, and survives what networks do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Run
from kernelhub.web.catalogue import DASH
from tests.e2e.conftest import Hub, Seen
from tests.web import samples
from verifier.records import GateId

pytestmark = pytest.mark.browser
GATES = samples.gate_results((GateId.NONFINITE, GateId.RANGE), hard=(GateId.NONFINITE,))


def queued_run() -> Run:
    task = samples.suite_load()[-1]
    return services.run_enqueue(task=task, kernel=samples.kernel_of(task, "softmax_live"))


def lease(run: Run) -> Run:
    return samples.run_lease(run, samples.node_online())


def judge(run: Run, *numbers: int) -> None:
    """The node reports these gates as it goes."""
    for number in numbers:
        result = GATES[number - 1]
        samples.run_post(run, events.GateStarted(result.gate), events.Gate(result))


def finish(run: Run) -> None:
    services.run_finish(run_id=run.pk, attempt=run.attempt, verdict=samples.verdict_of(run, GATES))


async def states(page: Page) -> str:
    """The twelve glyphs of the strip, as a reader sees them."""
    return "".join(await page.locator("#strip .glyph").all_inner_texts())


async def strip_is(page: Page, glyphs: str, timeout_s: float = 10) -> None:
    await expect(page.locator("#strip .glyph")).to_have_text(list(glyphs), timeout=timeout_s * 1000)


async def test_twelve_gates_light_up_as_their_events_arrive(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    run = await hub.do(queued_run)
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await expect(page.locator("#run-say")).to_contain_text("This run waits for a node.")
    await expect(page.locator("#live")).to_have_text("live")
    await strip_is(page, "············")

    run = await hub.do(lease, run)
    await expect(page.locator("h1")).to_contain_text("being judged")
    await hub.do(samples.run_post, run, events.GateStarted(GateId.AGREEMENT))
    await strip_is(page, "…···········")

    await hub.do(judge, run, 1, 2)
    await strip_is(page, "✓✕··········")
    await expect(page.locator("#gate-2")).to_contain_text("first bad index")
    await expect(page.locator("#run-say")).to_contain_text("Two of twelve gates are judged")

    await hub.do(judge, run, *range(3, 13))
    await strip_is(page, f"✓✕✓✓✓{DASH}✓✓✓✕✓✓")
    await hub.do(finish, run)
    await expect(page.locator("h1")).to_contain_text("an illusion")
    await expect(page.locator("#run-say")).to_contain_text("two gates reject it")
    await expect(page.locator("#replay-10")).to_contain_text("--gate G10")
    await expect(page.locator("#live")).to_have_text("complete")


# What a reader could see at any moment: how many gates the strip shows judged, and the banner.
WATCH = """() => {
  window.seen = [];
  const judged = (glyph) => "✓✕".includes(glyph.textContent);
  const look = () => window.seen.push([
    [...document.querySelectorAll("#strip .glyph")].filter(judged).length,
    document.querySelector("#run-say").textContent,
  ]);
  const parts = { childList: true, subtree: true };
  new MutationObserver(look).observe(document.querySelector("#run"), parts);
}"""


async def test_strip_and_banner_never_disagree(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await expect(page.locator("#live")).to_have_text("live")
    await page.evaluate(WATCH)
    for number, words in ((1, "One of twelve gates is"), (2, "Two of twelve gates are")):
        await hub.do(judge, run, number)
        await expect(page.locator("#run-say")).to_contain_text(words)
    starts = {0: "The verifier is at work; no gate", 1: "One of twelve", 2: "Two of twelve"}
    seen_pairs = await page.evaluate("window.seen")
    assert len(seen_pairs) >= 2
    assert all(text.strip().startswith(starts[count]) for count, text in seen_pairs)


async def test_a_cut_socket_is_said_and_nothing_is_missed(
    hub: Hub, browser_page: Page, seen: Seen
) -> None:
    seen.allowed = ("WebSocket connection", "ERR_CONNECTION_REFUSED", "Failed to load resource")
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await hub.do(judge, run, 1)
    await strip_is(page, "✓···········")

    await asyncio.to_thread(hub.stop)
    await expect(page.locator("#live")).to_have_text("connection lost, retrying")
    await hub.do(judge, run, 2, 3, 4)
    assert await states(page) == "✓···········"

    await asyncio.to_thread(hub.start)
    await expect(page.locator("#live")).to_have_text("live", timeout=20_000)
    await strip_is(page, "✓✕✓✓········")
    await expect(page.locator("#gate-2")).to_contain_text("first bad index")


async def test_a_lost_attempt_empties_the_strip(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await hub.do(judge, run, 1, 2)
    await strip_is(page, "✓✕··········")
    await hub.do(
        services.run_error,
        run_id=run.pk,
        attempt=1,
        kind=ErrorKind.INFRASTRUCTURE,
        message="the verifier process died",
    )
    await strip_is(page, "············")
    await expect(page.locator("#events")).to_contain_text("the verifier process died")
    await hub.do(judge, await hub.do(lease, run), 1)
    await strip_is(page, "✓···········")


async def test_a_curator_cancels_from_the_page(
    hub: Hub, browser_page: Page, sign_in: Callable[[str], Awaitable[None]]
) -> None:
    run = await hub.do(lease, await hub.do(queued_run))
    await sign_in("curator")
    await browser_page.goto(f"{hub.url}/runs/{run.pk}/")
    await browser_page.get_by_role("button", name="Cancel run").click()
    await expect(browser_page.locator("#run-say")).to_contain_text("cancelled before its verdict")


async def test_a_cell_tells_its_reason_on_focus_and_leads_to_its_evidence(
    hub: Hub, browser_page: Page
) -> None:
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await hub.do(judge, run, *range(1, 13))
    await hub.do(finish, run)
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    cell = page.locator('#strip [data-gate="G10"]')
    await cell.focus()
    await expect(page.locator("#strip li:nth-child(10) .why")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.locator("#gate-10")).to_be_in_viewport()


async def test_the_replay_command_is_copied_as_it_stands(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run = await hub.do(lease, await hub.do(queued_run))
    await hub.do(finish, run)
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await page.locator('[data-copy="replay-10"]').click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    name = f"verdict-{str(run.pk)[:8]}.json"
    assert copied == (
        f".venv/bin/kernelhub verdict {run.pk} --json --hub {hub.url} > {name}\n"
        f".venv/bin/python -m verifier replay {name} --gate G10"
    )


async def test_hostile_output_neither_runs_nor_breaks_the_page(
    hub: Hub, browser_page: Page
) -> None:
    page = browser_page
    run = await hub.do(lease, await hub.do(queued_run))
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    hostile = "<img src=x onerror=document.title='owned'>\x1b[31m</pre><script>alert(1)</script>"
    failed = replace(GATES[9], reason=hostile, summary=hostile)
    await hub.do(samples.run_post, run, events.Log("kernel", hostile), events.Gate(failed))
    await expect(page.locator("#log")).to_contain_text("<script>alert(1)</script>")
    await expect(page.locator('#strip [data-gate="G10"]')).to_have_class("g fail changed")
    assert "owned" not in await page.title()
    assert await page.locator("#run img").count() == 0
