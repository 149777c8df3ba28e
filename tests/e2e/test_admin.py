"""The admin in a real browser, under its own policy: its theme's scripts still do their work."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.async_api import Page, expect

from kernelhub.core.models import Run
from tests.e2e.conftest import Hub
from tests.web import samples

pytestmark = pytest.mark.browser
PATHS = (
    "/admin/",
    "/admin/core/run/",
    "/admin/core/kernel/?language__exact=triton",
    "/admin/core/node/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/accounts/apitoken/add/",
)


async def enter(hub: Hub, page: Page) -> None:
    """Signs a superuser in, through the admin's own form."""
    await hub.do(User.objects.create_superuser, "root", password="secret")
    await page.goto(f"{hub.url}/admin/")
    await page.locator("input[name=username]").fill("root")
    await page.locator("input[name=password]").fill("secret")
    await page.locator("[type=submit]").first.click()
    await expect(page).to_have_url(f"{hub.url}/admin/")


async def test_no_page_of_the_admin_breaks_its_policy(hub: Hub, browser_page: Page) -> None:
    """The fixture fails the test for whatever the policy refuses, which is a console error."""
    await hub.do(samples.world_seed)
    run = await hub.do(Run.objects.get, kernel__label="gelu_no_max")
    await enter(hub, browser_page)
    changes = (f"run/{run.pk}", f"task/{run.task_id}", f"kernel/{run.kernel_id}")
    for path in (*PATHS, *(f"/admin/core/{change}/change/" for change in changes)):
        response = await browser_page.goto(f"{hub.url}{path}", wait_until="load")
        assert response is not None
        assert response.status == 200, path
        assert "'unsafe-eval'" in response.headers["content-security-policy"], path


async def test_the_attributes_of_the_theme_are_alive(hub: Hub, browser_page: Page) -> None:
    page = browser_page
    await hub.do(samples.world_seed)
    await enter(hub, page)
    await page.goto(f"{hub.url}/admin/core/run/")
    alive = "() => Boolean(window.Alpine) && document.querySelector('[x-data]')._x_dataStack.length"
    assert await page.evaluate(alive)
    hidden = await page.evaluate("document.querySelectorAll('[x-cloak]').length")
    assert hidden == 0
