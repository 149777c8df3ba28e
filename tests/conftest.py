"""Fixtures that every part shares: real servers, started only when a test asks for one."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelhub.launch.private import private_postgres, private_redis
from kernelhub.settings.env import database_from_url

if TYPE_CHECKING:
    from verifier.session import Session


def pytest_configure() -> None:
    """A shell tells what it puts into the background to ignore the keyboard's signals, nohup also
    the terminal's; what tests start would inherit that and hear no Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def short_folder(name: str) -> Iterator[Path]:
    """A folder with a path short enough for a Unix socket, and passable for a system user."""
    folder = Path(tempfile.mkdtemp(prefix=f"kernelhub-{name}-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A private PostgreSQL of this test session."""
    with short_folder("pg") as folder, private_postgres(folder) as cluster:
        yield cluster.url


@pytest.fixture(scope="session")
def verifier_session() -> Iterator[Session]:
    """One warm verifier for all tests that judge kernels on the CPU."""
    from verifier.session import Session

    with Session("cpu") as session:
        yield session


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A private Redis of this test session. Flush what you leave behind."""
    with short_folder("redis") as folder, private_redis(folder) as server:
        yield server.url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """Points Django at the private server just before pytest-django creates the test database."""
    from django.db import connections

    connections["default"].settings_dict.update(database_from_url(postgres_url))


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The Chromium executable, installed through apt when we are root and it is missing."""
    from tests.chromium import chromium_find_or_install

    found = chromium_find_or_install()
    if isinstance(found, str):
        pytest.skip(f"NO BROWSER TESTS: {found}")
    return found
