"""A real hub in a process of its own, and a headless Chromium looking at it.

The browser is driven through Playwright's asynchronous interface: its synchronous one leaves an
event loop running in the main thread, where Django then refuses to touch the database.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import Group, User
from django.db import connections
from playwright.async_api import Page, async_playwright
from pytest_django import Settings

from kernelhub import celery  # noqa: F401 - without it, messages would look for a real broker
from tests.chromium import CHROMIUM_FLAGS

REPO = Path(__file__).parents[2]
START_S = 60
T = TypeVar("T")


@dataclass
class Hub:
    """A running web process."""

    url: str
    start: Callable[[], None]
    stop: Callable[[], None]

    async def do(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        """Runs one of core's services on the hub's database, as a node or a person would."""
        done: T = await database_sync_to_async(work)(*args, **named)
        return done


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def database_url() -> str:
    """The test database as the web process finds it: a Unix socket or a TCP port."""
    settings = connections["default"].settings_dict
    user, secret = quote(settings["USER"]), quote(settings["PASSWORD"])
    host = quote(settings["HOST"], safe="")
    return f"postgres://{user}:{secret}@/{settings['NAME']}?host={host}&port={settings['PORT']}"


def environment(redis_url: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "kernelhub.settings.local",
        "DATABASE_URL": database_url().removesuffix("&port="),
        "BROKER_URL": redis_url,
        "CHANNEL_URL": redis_url,
        "KERNELHUB_SECRET_KEY": "for-browser-tests-only",
        "KERNELHUB_DEBUG": "0",
    }


@pytest.fixture
def hub(
    transactional_db: None, redis_url: str, settings: Settings, tmp_path: Path
) -> Iterator[Hub]:
    """A web process on the test database; what tests change in it goes over the same Redis."""
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": {"hosts": [redis_url]}}}
    # The web process has no use for the fast hashes of the test settings.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "kernelhub.asgi:application"]
    command += ["--port", str(port), "--log-level", "warning"]
    running: list[subprocess.Popen[bytes]] = []
    log = (tmp_path / "web.log").open("ab")

    def start() -> None:
        process = subprocess.Popen(
            command, cwd=REPO, env=environment(redis_url), stdout=log, stderr=log
        )
        running.append(process)
        _wait_for(f"http://127.0.0.1:{port}/login/", process, tmp_path / "web.log")

    def stop() -> None:
        while running:
            process = running.pop()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    try:
        start()
        yield Hub(f"http://127.0.0.1:{port}", start, stop)
    finally:
        stop()
        log.close()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - our own loopback address
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the web process did not start: {log.read_text()[-2000:]}")


@dataclass
class Seen:
    """What the browser met while the test ran."""

    console: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    allowed: tuple[str, ...] = ()
    """Parts of console messages that this test expects."""

    def unexpected(self) -> list[str]:
        return [line for line in self.console if not any(part in line for part in self.allowed)]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
async def browser_page(chromium: Path, seen: Seen) -> AsyncIterator[Page]:
    """A page with storage of its own. An error in its console fails the test, and so does a
    request to any other host than this one."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=str(chromium), args=CHROMIUM_FLAGS
        )
        context = await browser.new_context(
            viewport={"width": 1280, "height": 900}, timezone_id="UTC", color_scheme="light"
        )
        page = await context.new_page()
        page.on("pageerror", lambda error: seen.console.append(f"error: {error}"))
        page.on("console", lambda message: _note(seen, message.type, message.text))
        context.on("request", lambda request: seen.hosts.add(urlsplit(request.url).hostname or ""))
        page.on("websocket", lambda ws: seen.hosts.add(urlsplit(ws.url).hostname or ""))
        yield page
        await browser.close()
    assert seen.unexpected() == []
    assert seen.hosts <= {"127.0.0.1", ""}


def _note(seen: Seen, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        seen.console.append(f"{kind}: {text}")


@pytest.fixture
def sign_in(hub: Hub, browser_page: Page) -> Callable[[str], Awaitable[None]]:
    """Signs a new person of the given role in, through the form."""

    async def as_role(role: str) -> None:
        await hub.do(_person, role)
        await browser_page.goto(f"{hub.url}/login/")
        await browser_page.get_by_label("Name").fill(role)
        await browser_page.get_by_label("Password").fill("secret")
        await browser_page.get_by_role("button", name="Sign in").click()
        await browser_page.get_by_role("button", name="Sign out").wait_for()

    return as_role


def _person(role: str) -> None:
    user = User.objects.create_user(role, password="secret")
    user.groups.add(Group.objects.get(name=role))
