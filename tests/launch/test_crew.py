"""Processes that die, that will not die, and that leave something behind."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelhub.launch import crew as crew_module
from kernelhub.launch.crew import Crew
from kernelhub.launch.errors import LaunchError
from kernelhub.launch.process import Service

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(60)"
)
PARENT = (
    "import subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


def never() -> None:
    """Nobody asks this crew to stop."""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def crew(said: list[str]) -> Iterator[Crew]:
    crew = Crew(said.append, never)
    yield crew
    crew.stop(patient=lambda: False)


def python(folder: Path, code: str, *, grace_s: float = 0.3) -> Service:
    return Service(
        name="thing",
        argv=(sys.executable, "-c", code),
        log=folder / "thing.log",
        stop_grace_s=grace_s,
    )


def eventually(condition: Callable[[], bool], *, timeout_s: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def ticking(crew: Crew, condition: Callable[[], bool]) -> bool:
    """Lets the crew do its rounds until the condition holds."""

    def tick_and_look() -> bool:
        crew.tick()
        return condition()

    return eventually(tick_and_look)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_process_that_ignores_sigterm_is_killed(crew: Crew, tmp_path: Path) -> None:
    service = python(tmp_path, STUBBORN)
    member = crew.start_and_wait(service, lambda: "up" in service.log.read_text(), timeout_s=10)
    crew.stop(patient=lambda: True)
    assert member.process.returncode == -signal.SIGKILL


def test_the_children_of_a_stopped_process_end_with_it(crew: Crew, tmp_path: Path) -> None:
    service = python(tmp_path, PARENT)
    crew.start_and_wait(service, lambda: service.log.read_text().strip() != "", timeout_s=10)
    grandchild = int(service.log.read_text())
    crew.stop(patient=lambda: True)
    assert eventually(lambda: not alive(grandchild))


def test_a_dead_process_is_started_again_and_said(
    crew: Crew, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, "BACKOFF_FIRST_S", 0.05)
    member = crew.start(python(tmp_path, "print('out of luck'); raise SystemExit(3)"))
    first = member.process.pid
    assert ticking(crew, lambda: member.process.pid != first)
    assert "thing ended (exit status 3): out of luck; starting it again" in said[0]


def test_the_pause_between_restarts_grows(crew: Crew, said: list[str], tmp_path: Path) -> None:
    member = crew.start(python(tmp_path, "raise SystemExit(3)"))
    member.pause_s = 0.05
    assert ticking(crew, lambda: len(said) == 3)
    assert member.pause_s == pytest.approx(0.4)


def test_a_full_disk_is_named_as_the_reason(crew: Crew, said: list[str], tmp_path: Path) -> None:
    code = "print('PANIC: No space left on device', flush=True); raise SystemExit(1)"
    crew.start(python(tmp_path, code))
    assert ticking(crew, lambda: bool(said))
    assert "the disk is full: free some space" in said[0]


def test_a_service_that_never_gets_ready_is_an_error_with_its_last_words(
    crew: Crew, tmp_path: Path
) -> None:
    with pytest.raises(LaunchError, match="thing did not start: no good"):
        crew.start_and_wait(
            python(tmp_path, "print('no good'); raise SystemExit(1)"), lambda: False, timeout_s=10
        )


def test_a_missing_program_is_an_error(crew: Crew, tmp_path: Path) -> None:
    service = Service(name="ghost", argv=("/nonexistent/ghost",), log=tmp_path / "ghost.log")
    with pytest.raises(LaunchError, match="ghost cannot be started"):
        crew.start(service)


def test_waiting_ends_when_somebody_asks_to_stop(tmp_path: Path) -> None:
    def stop() -> None:
        raise InterruptedError

    crew = Crew(lambda _line: None, stop)
    try:
        with pytest.raises(InterruptedError):
            crew.start_and_wait(python(tmp_path, STUBBORN), lambda: False, timeout_s=10)
    finally:
        crew.stop(patient=lambda: False)


def test_node_agents_stop_before_the_hub_and_the_hub_before_the_stores(tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n open({order!r}, 'a').write({name!r}); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )
    crew = Crew(lambda _line: None, never)
    for name, stage in (("store ", 2), ("hub ", 1), ("agent ", 0)):
        service = Service(
            name=name,
            argv=(sys.executable, "-c", code.format(order=str(order), name=name)),
            log=tmp_path / f"{stage}.log",
            stage=stage,
        )
        crew.start_and_wait(service, lambda log=service.log: "up" in log.read_text(), timeout_s=10)  # type: ignore[misc]
    crew.stop(patient=lambda: True)
    assert order.read_text() == "agent hub store "


def test_a_log_that_grows_is_bounded_while_its_process_runs(tmp_path: Path) -> None:
    from kernelhub.launch.var import log_bound

    path = tmp_path / "thing.log"
    with path.open("ab", buffering=0) as log:
        log.write(b"x" * 5000 + b"end")
        log_bound(path, limit_nbytes=1000)
        log.write(b"next")
    assert path.read_bytes() == b"next"
    assert (tmp_path / "thing.log.1").read_bytes() == b"x" * 997 + b"end"


def test_logs_are_for_the_owner_alone(crew: Crew, tmp_path: Path) -> None:
    service = python(tmp_path, "print('secret')")
    crew.start(service)
    assert service.log.stat().st_mode & 0o077 == 0
