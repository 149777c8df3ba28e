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
from tests.conftest import short_folder

REPO = Path(__file__).parents[2]
START_S = 60
REST_S = 5
AS_PLAYWRIGHT = (
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,"
    "primaryPointerType=4,availablePointerTypes=4",
)
"""What it tells browsers that it starts itself: there is a mouse, and no page is put to sleep."""
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


class Web:
    """A web process on the test database, kept from test to test: it takes long to start."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._redis_url = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def run(self, redis_url: str) -> None:
        """Have it run, with this Redis."""
        if redis_url != self._redis_url:
            self.stop()
        self._redis_url = redis_url
        if self._process is None or self._process.poll() is not None:
            self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "kernelhub.asgi:application"]
        command += ["--port", str(self._port), "--log-level", "warning"]
        env = environment(self._redis_url)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=REPO, env=env, stdout=log, stderr=log)
        _wait_for(f"{self.url}/login/", self._process, self._log)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


@pytest.fixture(scope="session")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    process = Web(tmp_path_factory.mktemp("web") / "web.log")
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def hub(transactional_db: None, web: Web, redis_url: str, settings: Settings) -> Iterator[Hub]:
    """A web process on the test database; what tests change in it goes over the same Redis."""
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": {"hosts": [redis_url]}}}
    # The web process has no use for the fast hashes of the test settings.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    web.run(redis_url)
    yield Hub(web.url, web.start, web.stop)
    _wait_for_rest()


def _wait_for_rest() -> None:
    """Until the web process asks the database nothing: the tables are about to be emptied."""
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    deadline = time.monotonic() + REST_S
    while time.monotonic() < deadline:
        with connections["default"].cursor() as cursor:
            cursor.execute(busy)
            if cursor.fetchone() == (0,):
                return
        time.sleep(0.05)


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


@pytest.fixture(scope="session")
def browser_url(chromium: Path) -> Iterator[str]:
    """Where one Chromium listens for the tests, each of which has a context of its own in it."""
    with short_folder("chromium") as folder:
        flags = [*CHROMIUM_FLAGS, *AS_PLAYWRIGHT, "--headless", "--remote-debugging-port=0"]
        command = [str(chromium), *flags, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{_debugging_port(folder / 'DevToolsActivePort', process)}"
        finally:
            process.terminate()
            process.wait(10)


def _debugging_port(told: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if told.exists() and (lines := told.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.05)
    raise AssertionError("Chromium did not start")


@pytest.fixture
async def browser_page(browser_url: str, seen: Seen) -> AsyncIterator[Page]:
    """A page with storage of its own. An error in its console fails the test, and so does a
    request to any other host than this one."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(browser_url)
        context = await browser.new_context(
            viewport={"width": 1280, "height": 900}, timezone_id="UTC", color_scheme="light"
        )
        page = await context.new_page()
        page.on("pageerror", lambda error: seen.console.append(f"error: {error}"))
        page.on("console", lambda message: _note(seen, message.type, message.text))
        context.on("request", lambda request: seen.hosts.add(urlsplit(request.url).hostname or ""))
        page.on("websocket", lambda ws: seen.hosts.add(urlsplit(ws.url).hostname or ""))
        yield page
        await context.close()
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
