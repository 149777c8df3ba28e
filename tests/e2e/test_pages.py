"""Pages in a real browser: filters, keys, themes, phones, sign-in, and pictures for the README."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Page, expect

from kernelhub.core import services
from kernelhub.core.models import Run
from tests.e2e.conftest import Hub
from tests.web import samples
from verifier import records
from verifier.records import GateId

pytestmark = pytest.mark.browser
IMAGES = Path(__file__).parents[2] / "docs/img"
PICTURES: Final[tuple[tuple[Literal["light", "dark"], str], ...]] = (
    ("light", "run.png"),
    ("dark", "run-dark.png"),
)
PATHS: tuple[str, ...] = (
    "/",
    "/runs/",
    "/suites/",
    "/suites/fuzzoracle/",
    "/tasks/fuzzoracle/softmax/",
)
PATHS += ("/verifier/", "/fleet/", "/login/")


def run_named(label: str) -> Run:
    return Run.objects.get(kernel__label=label)


async def every_path(hub: Hub) -> list[str]:
    run = await hub.do(run_named, "gelu_no_max")
    timed = await hub.do(run_named, "attention_triton")
    return [*PATHS, f"/runs/{run.pk}/", f"/runs/{timed.pk}/", f"/kernels/{run.kernel_id}/"]


async def test_every_page_works_in_both_themes_without_a_word_in_the_console(
    hub: Hub, browser_page: Page
) -> None:
    """The fixture fails the test for any console error and any request to another host."""
    await hub.do(samples.world_seed)
    for scheme in ("light", "dark"):
        await browser_page.emulate_media(color_scheme=scheme)
        for path in await every_path(hub):
            response = await browser_page.goto(f"{hub.url}{path}", wait_until="load")
            assert response is not None
            assert response.status == 200, path


async def test_no_page_is_wider_than_a_phone(hub: Hub, browser_page: Page) -> None:
    await hub.do(samples.world_seed)
    await browser_page.set_viewport_size({"width": 360, "height": 740})
    for path in await every_path(hub):
        await browser_page.goto(f"{hub.url}{path}")
        wide = await browser_page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, path


def run_with_wide_values() -> Run:
    """A run whose counterexample has more digits than any screen is wide."""
    node, task = samples.node_online(), samples.suite_load()[-1]
    run = services.run_enqueue(task=task, kernel=samples.kernel_of(task, "wide_values"))
    values = tuple(f"-0.0258896763754{n:03}" for n in range(12))
    example = replace(
        samples.counterexample(GateId.ACCUMULATION, 7),
        index=(0, 9),
        slices=tuple(
            records.TensorSlice(name, (2, 309), "float64", (0, 0), values)
            for name in ("expected", "got")
        ),
    )
    gates = tuple(
        replace(gate, counterexample=example) if gate.counterexample else gate
        for gate in samples.gate_results((GateId.ACCUMULATION,))
    )
    return samples.run_judge(run, node, gates)


WIDER_THAN_ITS_PLACE = """() => [...document.querySelectorAll("main *")].filter((one) => {
  if (one.closest(".wide-table, .source, .log, .chart, pre, svg")) return false;
  return one.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_offending_index_and_its_values_are_in_view_without_scrolling_sideways(
    hub: Hub, browser_page: Page, width: int
) -> None:
    page = browser_page
    run = await hub.do(run_with_wide_values)
    await page.set_viewport_size({"width": width, "height": 2400})
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    row = page.locator(".values .offending")
    await expect(row).to_contain_text("[0, 9]")
    for cell in await row.locator("th, td").all():
        await expect(cell).to_be_in_viewport(ratio=1)
    await expect(page.locator(".wide-table:has(.values)")).not_to_have_attribute("data-more", "")


async def test_a_wide_table_scrolls_within_itself_and_says_so(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    run = await hub.do(run_with_wide_values)
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    box = page.locator(".wide-table:has(.case)")
    await expect(box).to_have_attribute("data-more", "")
    await expect(box).to_have_attribute("aria-label", re.compile("scrolls sideways$"))
    await box.focus()
    last = box.locator("td").last
    for _ in range(60):
        await page.keyboard.press("ArrowRight")
    await expect(box).not_to_have_attribute("data-more", "")
    await expect(last).to_be_in_viewport(ratio=1)
    assert await page.evaluate(WIDER_THAN_ITS_PLACE) == []


# Cells of a page's main table of which a reader would see nothing or a part at the right.
CUT = """(selector) => [...document.querySelectorAll(selector)].filter((cell) => {
  const box = cell.getBoundingClientRect();
  return cell.textContent.trim() && (!box.width || box.right > innerWidth);
}).length"""


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        ("/suites/", ".stack td"),
        ("/suites/fuzzoracle/", ".runs td:not(.wide, .loose)"),
        ("/verifier/", ".stack td"),
        ("run", "#run-gates td"),
    ],
)
async def test_a_phone_shows_every_column_of_the_main_table(
    hub: Hub, browser_page: Page, path: str, cells: str
) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    run = await hub.do(run_named, "gelu_no_max")
    await page.set_viewport_size({"width": 390, "height": 740})
    await page.goto(f"{hub.url}{path if path.startswith('/') else f'/runs/{run.pk}/'}")
    assert await page.locator(cells).count() > 4
    assert await page.evaluate(CUT, cells) == 0


async def test_a_description_is_as_wide_as_a_phone_and_times_do_not_wrap(
    hub: Hub, browser_page: Page
) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    await page.set_viewport_size({"width": 390, "height": 740})
    await page.goto(f"{hub.url}/suites/")
    box = await page.locator(".stack td .hint").first.bounding_box()
    assert box is not None
    assert box["width"] > 300
    run = await hub.do(run_named, "gelu_no_max")
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    heights = await page.evaluate(
        "[...document.querySelectorAll('.events time')].map((t) => t.getClientRects().length && "
        "Math.round(t.scrollHeight / parseFloat(getComputedStyle(t).lineHeight)))"
    )
    assert set(heights) <= {0, 1}


async def test_charts_are_drawn_in_the_colours_of_the_theme(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    run = await hub.do(run_named, "attention_triton")
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await page.locator("#timing[data-drawn=yes]").wait_for()
    bars = "() => [...document.querySelectorAll('#timing .point path')].map(p => p.style.fill)"
    light = await page.evaluate(bars)
    assert len(set(light)) == 2
    await page.emulate_media(color_scheme="dark")
    # Polled from here: the page's own policy forbids evaluating text inside it.
    dark = light
    for _ in range(50):
        dark = await page.evaluate(bars)
        if dark != light:
            break
        await asyncio.sleep(0.1)
    assert len(set(dark)) == 2
    assert not set(dark) & set(light)


# The whole plot area, for the sample's bars may happen to end before the tools begin.
CLEAR_OF_TOOLS = """chart => {
  const tools = chart.querySelector(".modebar-group").getBoundingClientRect();
  const plot = chart.querySelector(".nsewdrag").getBoundingClientRect();
  return tools.height > 10 && plot.height > 50 && plot.top >= tools.bottom;
}"""


async def test_a_charts_tools_show_on_hover_and_cover_no_data(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    run = await hub.do(run_named, "attention_triton")
    for path, name in (("/", "gates-chart"), (f"/runs/{run.pk}/", "timing")):
        await page.goto(f"{hub.url}{path}")
        chart = page.locator(f"#{name}[data-drawn=yes]")
        tools = chart.locator(".modebar-group").first
        await expect(tools).to_have_css("opacity", "0")
        await chart.hover()
        await expect(tools).to_have_css("opacity", "1")
        assert await chart.evaluate(CLEAR_OF_TOOLS), path


async def test_filters_stand_in_the_url_and_apply_at_once(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    await page.goto(f"{hub.url}/runs/")
    await page.get_by_label("Fails gate").select_option("G10")
    await expect(page).to_have_url(f"{hub.url}/runs/?gate=G10")
    await expect(page.locator(".runs tbody tr")).to_have_count(3)
    await page.get_by_label("Kernel or task", exact=True).fill("gelu")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{hub.url}/runs/?q=gelu&gate=G10")
    await expect(page.locator(".runs tbody tr")).to_have_count(1)
    await page.go_back()
    await expect(page.locator(".runs tbody tr")).to_have_count(3)
    await expect(page.get_by_label("Fails gate")).to_have_value("G10")
    await page.get_by_role("link", name="Clear").click()
    await expect(page.locator(".runs tbody tr")).to_have_count(20)


async def test_keys_move_through_rows_search_and_help(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    await page.goto(f"{hub.url}/runs/")
    rows = page.locator("a[data-row]")
    for key, index in (("j", 0), ("j", 1), ("k", 0)):
        await page.keyboard.press(key)
        await expect(rows.nth(index)).to_be_focused()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Kernel or task", exact=True)).to_be_focused()
    await page.keyboard.type("j?")
    await expect(page.get_by_label("Kernel or task", exact=True)).to_have_value("j?")
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.locator("#help")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#help")).to_be_hidden()
    await page.keyboard.press("g")
    await page.keyboard.press("v")
    await expect(page).to_have_url(f"{hub.url}/verifier/")


async def test_the_palette_jumps_to_pages_and_searches(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    run = await hub.do(run_named, "gelu_no_max")
    await page.goto(f"{hub.url}/runs/{run.pk}/")
    await page.keyboard.press("Control+k")
    names = await page.locator("#jump li").all_inner_texts()
    assert len(names) == len(set(names)) > 5
    await page.keyboard.type("fle")
    await expect(page.locator("#jump li")).to_have_text(["Fleet", 'Search runs for "fle"'])
    await page.keyboard.press("Escape")
    await expect(page.locator("#jump")).to_be_hidden()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("fleet")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{hub.url}/fleet/")
    await page.keyboard.press("Meta+k")
    await page.keyboard.type("gelu_no_max")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{hub.url}/runs/?q=gelu_no_max")


async def test_a_bar_of_the_gates_chart_leads_to_its_runs(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    await page.goto(f"{hub.url}/")
    await page.locator("#gates-chart[data-drawn=yes]").wait_for()
    bars = page.locator("#gates-chart .point path")
    boxes = [await bar.bounding_box() for bar in await bars.all()]
    box = next(box for box in boxes if box and box["width"] > 40)
    await page.mouse.click(box["x"] + 10, box["y"] + box["height"] / 2)
    await page.wait_for_url(re.compile(r"/runs/\?gate=G\d+&illusion=yes$"))
    await expect(page.locator(".runs tbody tr").first).to_contain_text("illusion")


async def test_a_chosen_theme_is_kept_and_the_system_decides_otherwise(
    hub: Hub, browser_page: Page
) -> None:
    page = browser_page
    background = "getComputedStyle(document.body).backgroundColor"
    await page.goto(f"{hub.url}/login/")
    light = await page.evaluate(background)
    await page.emulate_media(color_scheme="dark")
    dark = await page.evaluate(background)
    assert light != dark
    await page.locator("#theme").click()
    assert await page.evaluate(background) == light
    await page.reload()
    assert await page.evaluate(background) == light
    await expect(page.locator("#theme")).to_have_text("Theme: light")


async def test_one_signs_in_and_out(
    hub: Hub, browser_page: Page, sign_in: Callable[[str], Awaitable[None]]
) -> None:
    await sign_in("submitter")
    await expect(browser_page.locator(".tools")).to_contain_text("submitter")
    await browser_page.get_by_role("button", name="Sign out").click()
    await expect(browser_page.get_by_role("link", name="Sign in")).to_be_visible()


async def test_the_overview_follows_what_happens(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await page.goto(f"{hub.url}/")
    await expect(page.locator("h1")).to_have_text("No kernel has been judged yet.")
    await hub.do(samples.world_seed)
    await page.reload()
    await expect(page.locator("#live")).to_have_text("live")
    queued = await hub.do(Run.objects.get, status="queued")
    await hub.do(services.run_cancel, run=queued)
    await expect(page.locator("#overview-campaigns")).to_contain_text("20 of 20 runs done")
    await expect(page.locator(f"#run-{queued.pk}")).to_contain_text("cancelled")


async def test_the_runs_follow_what_happens_but_not_under_the_pointer(
    hub: Hub, browser_page: Page
) -> None:
    page, names = browser_page, browser_page.locator("a[data-row]")
    await hub.do(samples.world_seed)
    queued = await hub.do(Run.objects.get, status="queued")
    other = await hub.do(run_waiting, "waits_too")
    node = await hub.do(samples.node_online)
    await page.goto(f"{hub.url}/runs/")
    await expect(page.locator("#live")).to_have_text("live")
    await page.locator(".runs tbody tr").nth(5).hover()
    before = await names.all_inner_texts()
    await hub.do(samples.run_lease, queued, node)
    await expect(page.locator("#runs-lede")).to_contain_text("1 waiting; 1 running")
    assert await names.all_inner_texts() == before
    await page.mouse.move(5, 5)
    await hub.do(samples.run_lease, other, node)
    await expect(names.first).to_have_text("waits_too")
    await expect(page.locator(".runs tbody tr").nth(1)).to_have_id(f"run-{queued.pk}")


def run_waiting(label: str) -> Run:
    task = samples.suite_load()[-1]
    return services.run_enqueue(task=task, kernel=samples.kernel_of(task, label))


async def test_reduced_motion_stops_every_animation(hub: Hub, browser_page: Page) -> None:
    await hub.do(samples.world_seed)
    await browser_page.emulate_media(reduced_motion="reduce")
    await browser_page.goto(f"{hub.url}/runs/")
    moving = await browser_page.evaluate("document.getAnimations().length")
    assert moving == 0


@pytest.mark.skipif(
    os.environ.get("UPDATE_SCREENSHOTS") != "1",
    reason="PICTURES LEFT ALONE: UPDATE_SCREENSHOTS=1 makes docs/img/*.png anew",
)
async def test_pictures_for_the_readme(hub: Hub, browser_page: Page) -> None:
    """From sample data, or from the hub that KERNELHUB_HUB_URL names, such as a `make run`."""
    base = os.environ.get("KERNELHUB_HUB_URL", "")
    if not base:
        await hub.do(samples.world_seed)
        base = hub.url
    page = browser_page
    IMAGES.mkdir(parents=True, exist_ok=True)
    await page.goto(f"{base}/runs/?illusion=yes")
    await page.locator("a[data-row]").first.click()
    for scheme, name in PICTURES:
        await page.emulate_media(color_scheme=scheme)
        await page.locator("#strip").wait_for()
        await page.locator("#events li").first.wait_for()
        await page.screenshot(path=IMAGES / name)
