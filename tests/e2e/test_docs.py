"""The API's page in a real browser, under the same policy as every other page."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Hub

pytestmark = pytest.mark.browser


async def test_the_api_page_shows_its_operations_without_asking_again(
    hub: Hub, browser_page: Page
) -> None:
    """The fixture fails the test for a script that the policy refuses, which is a console error."""
    page, asked = browser_page, []
    page.on("request", lambda request: asked.append(request.url))
    response = await page.goto(f"{hub.url}/api/v1/docs/")
    assert response is not None
    assert "script-src 'self';" in response.headers["content-security-policy"]
    submit = page.locator(".opblock-post").filter(has_text="/api/v1/runs").first
    await expect(submit).to_be_visible()
    await submit.locator(".opblock-summary").click()
    await expect(submit).to_contain_text("Idempotency-Key")
    assert not [url for url in asked if url.endswith("openapi.json")]


async def test_an_operation_is_tried_out_from_the_page(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await page.goto(f"{hub.url}/api/v1/docs/")
    block = page.locator("#operations-catalogue-suites_list")
    await block.locator(".opblock-summary").click()
    await block.get_by_role("button", name="Try it out").click()
    await block.get_by_role("button", name="Execute").click()
    await expect(block.locator(".live-responses-table .response")).to_contain_text("200")


async def test_the_api_page_is_dark_where_the_system_is(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await page.goto(f"{hub.url}/api/v1/docs/")
    await page.locator(".opblock-tag").first.wait_for()
    name = page.locator(".opblock-tag").first
    light = await name.evaluate("name => getComputedStyle(name).color")
    await page.emulate_media(color_scheme="dark")
    await expect(page.locator("html")).to_have_class("dark-mode")
    await expect(name).not_to_have_css("color", light)
    ground = "rgb(20, 20, 19)"  # that of every page
    await expect(page.locator("#swagger-ui .swagger-ui")).to_have_css("background-color", ground)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_api_page_keeps_the_theme_that_was_chosen_on_the_site(
    hub: Hub, browser_page: Page, theme: str
) -> None:
    page = browser_page
    await page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
    await page.context.add_cookies([{"name": "theme", "value": theme, "url": hub.url}])
    await page.goto(f"{hub.url}/api/v1/docs/")
    await page.locator(".opblock-tag").first.wait_for()
    await expect(page.locator("html")).to_have_class("dark-mode" if theme == "dark" else "")
    await expect(page.locator(".hub")).to_have_css(
        "background-color", "rgb(27, 27, 26)" if theme == "dark" else "rgb(255, 255, 255)"
    )
