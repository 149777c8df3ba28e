"""What `make run` starts ends with make, however make is asked to end; `nohup` keeps it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from kernelhub.launch.keeper import descendants
from tests.launch.test_crew import alive, eventually

REPO: Final = Path(__file__).resolve().parents[2]
# What the recipe of `make run` does, with a body that stops when it is asked to.
BODY: Final = """
import sys, time
from kernelhub.launch.keeper import keep
from kernelhub.launch.supervisor import Stop
def body():
    stop = Stop()
    stop.listen()
    print("serving", flush=True)
    while not stop.asked:
        time.sleep(0.05)
    print("stopped", flush=True)
    return 0
sys.exit(keep(body, stop_with_parent=True))
"""

# A machine so busy that the keeper gets on late, when its child is already serving.
LATE: Final = """
import os, time
fork = os.fork
def late():
    pid = fork()
    time.sleep(1.0 if pid else 0.0)
    return pid
os.fork = late
"""


class Made:
    """A make with a keeper and a body below it, in a session and group of its own."""

    def __init__(self, folder: Path, *prefix: str, before: str = "") -> None:
        (folder / "body.py").write_text(before + BODY)
        recipe = f"@exec {sys.executable} {folder / 'body.py'}"
        (folder / "Makefile").write_text(f"run:\n\t{recipe}\n")
        self.log = folder / "log.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*prefix, "make", "--no-print-directory", "-C", str(folder), "run"],
                env={**os.environ, "PYTHONPATH": str(REPO)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        assert eventually(lambda: "serving" in self.log.read_text()), self.log.read_text()
        self.pids = list(descendants(self.process.pid))
        assert len(self.pids) == 2

    def all_gone(self) -> bool:
        self.process.poll()
        return not any(map(alive, self.pids))

    def stopped_in_order(self) -> bool:
        return eventually(self.all_gone) and "stopped" in self.log.read_text()


Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    if shutil.which("make") is None:
        pytest.skip("NO MAKE: what it does with signals is not tried")
    made: list[Made] = []

    def start(*prefix: str, before: str = "") -> Made:
        made.append(Made(tmp_path, *prefix, before=before))
        return made[-1]

    yield start
    for one in made:
        for pid in filter(alive, (one.process.pid, *one.pids)):
            os.kill(pid, signal.SIGKILL)
        one.process.wait()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]
)
def test_a_signal_to_make_alone_stops_everything(make: Make, number: signal.Signals) -> None:
    made = make()
    os.kill(made.process.pid, number)
    assert made.stopped_in_order(), made.log.read_text()
    made.process.wait(timeout=5)


def test_a_signal_before_the_keeper_looks_stops_everything(make: Make) -> None:
    made = make(before=LATE)
    os.kill(made.process.pid, signal.SIGQUIT)
    assert made.stopped_in_order(), made.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_terminals_signal_to_the_group_stops_everything(
    make: Make, number: signal.Signals
) -> None:
    made = make()
    os.killpg(made.process.pid, number)
    assert made.stopped_in_order(), made.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_python_of_make_stops_everything(
    make: Make, number: signal.Signals
) -> None:
    made = make()
    [keeper] = (
        Path(f"/proc/{made.process.pid}/task/{made.process.pid}/children").read_text().split()
    )
    os.kill(int(keeper), number)
    assert made.stopped_in_order(), made.log.read_text()
    assert made.process.wait(timeout=5) == 0, made.log.read_text()


def test_under_nohup_a_closed_terminal_stops_nothing_and_a_request_does(make: Make) -> None:
    made = make("nohup")
    os.killpg(made.process.pid, signal.SIGHUP)
    for pid in made.pids:
        os.kill(pid, signal.SIGHUP)
    time.sleep(1.5)
    assert all(map(alive, made.pids))
    os.kill(made.process.pid, signal.SIGTERM)
    assert made.stopped_in_order(), made.log.read_text()


def test_the_recipe_of_make_run_is_the_one_tried_here() -> None:
    makefile = (REPO / "Makefile").read_text()
    recipe = re.search(r"^run:.*\n(?:\t.*\n)*", makefile, re.MULTILINE)
    assert recipe is not None
    assert "@exec $(BIN)/python -m kernelhub.launch --stop-with-parent" in recipe[0]
