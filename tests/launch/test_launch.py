"""The whole hub, started as ``make run`` starts it: no agent, no demo, a folder of its own."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from kernelhub.launch.keeper import descendants
from kernelhub.launch.redis_server import free_port
from tests.conftest import short_folder
from tests.launch.test_crew import alive, eventually

REPO: Final = Path(__file__).resolve().parents[2]
START_TIMEOUT_S: Final = 120
STOP_TIMEOUT_S: Final = 15
OURS: Final = ("DATABASE_URL", "BROKER_URL", "CHANNEL_URL", "DJANGO_SETTINGS_MODULE")


class Launch:
    """One ``python -m kernelhub.launch`` and what it printed so far."""

    def __init__(self, var: Path, port: int, **env: str) -> None:
        clean = {name: value for name, value in os.environ.items() if name not in OURS}
        place = {"KERNELHUB_VAR": str(var), "KERNELHUB_PORT": str(port)}
        self.port = port
        self.output = var.with_name(f"launch-{time.monotonic_ns()}.txt")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kernelhub.launch", "--hub-only", "--no-demo"],
                cwd=REPO,
                env={**clean, **place, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait_until_serving(self) -> set[int]:
        """The ids of all processes of the hub."""
        done = eventually(
            lambda: "Ctrl-C stops" in self.text or self.process.poll() is not None,
            timeout_s=START_TIMEOUT_S,
        )
        assert done, self.text
        assert self.process.poll() is None, self.text
        return set(descendants(self.process.pid))

    def ends(self) -> int:
        return self.process.wait(timeout=STOP_TIMEOUT_S)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The var/ that the tests of this module share, as successive launches would."""
    with short_folder("launch") as folder:
        yield folder / "var"


@contextmanager
def launched(var: Path, **env: str) -> Iterator[Launch]:
    launch = Launch(var, free_port(), **env)
    try:
        yield launch
    finally:
        pids = {launch.process.pid, *descendants(launch.process.pid)}
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)
        launch.process.wait()


@pytest.fixture
def used(place: Path) -> Path:
    """The same folder, which a hub has served from before, whichever tests ran."""
    if not (place / "cli-token").exists():
        with launched(place) as launch:
            launch.wait_until_serving()
    return place


def status_of(port: int, path: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status


def command_lines(pids: set[int]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids if alive(pid))


def test_a_first_launch_serves_and_ctrl_c_leaves_nothing_running(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        assert "sign in as admin with the password" in launch.text
        assert status_of(launch.port, "/") == 200
        assert status_of(launch.port, "/static/vendor/plotly/plotly.min.js") == 200
        launch.process.send_signal(signal.SIGINT)
        assert launch.ends() == 0
        assert not any(map(alive, pids))


def test_a_second_launch_keeps_accounts_and_tokens_and_tells_no_password(used: Path) -> None:
    token = (used / "cli-token").read_text()
    with launched(used) as launch:
        launch.wait_until_serving()
        assert "with the password" not in launch.text
        assert "changepassword admin" in launch.text
    assert (used / "cli-token").read_text() == token


def test_two_launches_on_one_folder_do_not_meet(place: Path) -> None:
    with launched(place) as first:
        first.wait_until_serving()
        with launched(place) as second:
            assert second.ends() == 1
        assert "kernelhub already runs on" in second.text
        assert status_of(first.port, "/login/") == 200


def test_a_killed_supervisor_leaves_nothing_running(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        os.kill(supervisor_of(launch), signal.SIGKILL)
        launch.ends()
        assert not any(map(alive, pids))


def test_a_killed_keeper_leaves_nothing_running(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        launch.process.kill()
        assert eventually(lambda: not any(map(alive, pids)), timeout_s=STOP_TIMEOUT_S)


def test_keeper_and_supervisor_killed_together_leave_nothing_running(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        os.kill(launch.process.pid, signal.SIGSTOP)  # the keeper must not see the first death
        os.kill(supervisor_of(launch), signal.SIGKILL)
        launch.process.kill()
        assert eventually(lambda: not any(map(alive, pids)), timeout_s=STOP_TIMEOUT_S)


def test_no_secret_stands_in_arguments_or_logs(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        secrets = [
            (place / name).read_text().strip()
            for name in ("cli-token", "secret-key", "postgres/password", "redis/password")
        ]
        seen = command_lines(pids) + "".join(
            path.read_text(errors="replace") for path in (place / "log").iterdir()
        )
    assert not [secret for secret in secrets if secret in seen]


def test_files_with_secrets_are_for_the_owner_alone(used: Path) -> None:
    for name in ("cli-token", "secret-key", "redis/redis.conf", "postgres/password"):
        assert (used / name).stat().st_mode & 0o077 == 0


def test_a_server_that_dies_comes_back(place: Path) -> None:
    with launched(place) as launch:
        pids = launch.wait_until_serving()
        [web] = [pid for pid in pids if "uvicorn" in command_lines({pid})]
        os.kill(web, signal.SIGKILL)
        assert eventually(lambda: "web ended (signal 9)" in launch.text)
        assert eventually(lambda: answers(launch.port), timeout_s=30)


def answers(port: int) -> bool:
    try:
        return status_of(port, "/login/") == 200
    except OSError:
        return False


def supervisor_of(launch: Launch) -> int:
    """The keeper's only child."""
    children = Path(f"/proc/{launch.process.pid}/task/{launch.process.pid}/children")
    [pid] = children.read_text().split()
    return int(pid)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"DATABASE_URL": "postgres://x:hush@127.0.0.1:1/x"}, "correct DATABASE_URL, or unset it"),
        ({"DATABASE_URL": "mysql://x:hush@127.0.0.1/x"}, "DATABASE_URL must start with one of"),
        ({"BROKER_URL": "redis://:hush@127.0.0.1:1/0"}, "correct BROKER_URL, or unset it"),
        ({"CHANNEL_URL": "redis://:hush@127.0.0.1:1/0"}, "correct CHANNEL_URL, or unset it"),
        ({"KERNELHUB_PORT": "many"}, "KERNELHUB_PORT must be a number from 1 to 65535"),
        ({"KERNELHUB_VAR": "var"}, "KERNELHUB_VAR must be an absolute path"),
    ],
)
def test_a_wrong_setting_is_one_line_and_no_traceback(
    place: Path, env: dict[str, str], said: str
) -> None:
    with launched(place, **env) as launch:
        assert launch.ends() == 1
        [line] = launch.text.splitlines()
        assert said in line
        assert "hush" not in line
