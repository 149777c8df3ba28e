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
