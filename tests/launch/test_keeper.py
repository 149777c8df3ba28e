"""Nothing outlives the keeper's child, not even what left its process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.test_crew import alive, eventually

# The body starts a daemon in the classical way: two forks and a session of its own.
BODY = r"""
import os, sys, time
from kernelhub.launch.keeper import keep
def body():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(1, f"daemon {os.getpid()}\n".encode())
            time.sleep(60)
        os._exit(0)
    os.write(1, f"body {os.getpid()}\n".encode())
    time.sleep(float(sys.argv[1]))
    return 7
sys.exit(keep(body))
"""


class Kept:
    """A keeper with its body and the body's daemon."""

    def __init__(self, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BODY, str(seconds)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline().split() for _ in range(2)]
        pids = {name: int(pid) for name, pid in lines}
        self.body, self.daemon = pids["body"], pids["daemon"]

    def all_gone(self) -> bool:
        return not (alive(self.body) or alive(self.daemon))


@pytest.fixture
def kept() -> Iterator[Kept]:
    kept = Kept(60)
    yield kept
    for pid in (kept.process.pid, kept.body, kept.daemon):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    kept.process.communicate()


def test_the_keeper_ends_with_the_status_of_its_child() -> None:
    kept = Kept(0.5)
    kept.process.communicate(timeout=10)
    assert kept.process.returncode == 7


def test_a_daemon_is_swept_when_the_child_ends_by_itself() -> None:
    kept = Kept(0.5)
    kept.process.communicate(timeout=10)
    assert kept.all_gone()


def test_a_daemon_is_swept_when_the_child_is_killed(kept: Kept) -> None:
    os.kill(kept.body, signal.SIGKILL)
    assert kept.process.wait(timeout=10) == 128 + signal.SIGKILL
    assert kept.all_gone()


def test_a_signal_to_the_keeper_reaches_the_child(kept: Kept) -> None:
    kept.process.send_signal(signal.SIGTERM)
    assert kept.process.wait(timeout=10) == 128 + signal.SIGTERM
    assert kept.all_gone()


def test_the_child_is_told_when_the_keeper_is_killed(kept: Kept) -> None:
    kept.process.kill()
    assert eventually(lambda: not alive(kept.body))


def test_descendants_are_found_whatever_their_name(tmp_path: Path) -> None:
    from kernelhub.launch.keeper import descendants

    script = tmp_path / "x) 1 (y"
    script.symlink_to(sys.executable)
    with subprocess.Popen([script, "-c", "import time; time.sleep(60)"]) as process:
        time.sleep(0.05)
        found = list(descendants(os.getpid()))
        process.kill()
    assert process.pid in found
