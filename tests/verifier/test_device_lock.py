"""The lock of a device, between processes as they really are: slow, many, and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from verifier.device_lock import DeviceBusyError, DeviceLock, Held, device_lock, lock_folder
from verifier.errors import InfrastructureError
from verifier.records import DeviceMode, Environment

REPO = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
PROGRAM = """
import sys, time
from pathlib import Path
from verifier.device_lock import DeviceLock
folder, way = Path(sys.argv[1]), sys.argv[2]
lock = DeviceLock.of(folder, "GPU-1")
with getattr(lock, way)():
    print("in", flush=True)
    sys.stdin.readline()
print("out", flush=True)
"""
JUDGE = """
import sys, time
from pathlib import Path
from verifier.device_lock import DeviceLock
folder = Path(sys.argv[1])
lock = DeviceLock.of(folder, "GPU-1")
print("in", flush=True)
while not (folder / "stop").exists():
    with lock.shared():
        for call in range(50):
            lock.give_way()
            time.sleep(0.002)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DeviceLock]:
    made = DeviceLock.of(tmp_path, "GPU-1", patience_s=0.3)
    yield made
    made.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[DeviceLock]:
    """The same device, seen through files of one's own: as from another process."""
    made = DeviceLock.of(tmp_path, "GPU-1", patience_s=0.3)
    yield made
    made.close()


class Holder:
    """Another process that holds the lock until it is told to let go, or killed."""

    def __init__(self, folder: Path, way: str, program: str = PROGRAM) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder), way],
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def holders(tmp_path: Path) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def hold(stack: ExitStack, folder: Path, way: str, program: str = PROGRAM) -> Holder:
    holder = Holder(folder, way, program)
    stack.callback(holder.end)
    assert holder.says() == "in"
    return holder


def test_judging_goes_on_beside_judging(lock: DeviceLock, other: DeviceLock) -> None:
    with lock.shared(), other.shared():
        assert (lock.held, other.held) == (Held.SHARED, Held.SHARED)


def test_nobody_times_while_another_process_judges(
    lock: DeviceLock, tmp_path: Path, holders: ExitStack
) -> None:
    hold(holders, tmp_path, "shared")
    with pytest.raises(DeviceBusyError, match="does not go on"), lock.exclusive():
        pytest.fail("timed beside a judge")


@pytest.mark.parametrize("way", ["shared", "exclusive"])
def test_nobody_uses_the_device_while_another_process_times(
    lock: DeviceLock, tmp_path: Path, holders: ExitStack, way: str
) -> None:
    hold(holders, tmp_path, "exclusive")
    with pytest.raises(DeviceBusyError), getattr(lock, way)():
        pytest.fail("beside a timing")


@pytest.mark.parametrize("way", ["shared", "exclusive"])
def test_a_holder_that_is_killed_lets_go(
    lock: DeviceLock, tmp_path: Path, holders: ExitStack, way: str
) -> None:
    holder = hold(holders, tmp_path, way)
    os.kill(holder.process.pid, signal.SIGKILL)
    holder.process.wait(timeout=PATIENCE_S)
    with lock.exclusive():
        assert lock.held is Held.EXCLUSIVE


def test_who_is_killed_while_it_waits_to_time_holds_nobody_up(
    lock: DeviceLock, other: DeviceLock, tmp_path: Path, holders: ExitStack
) -> None:
    with other.shared():
        waiting = Holder(tmp_path, "exclusive")
        holders.callback(waiting.end)
        deadline = time.monotonic() + PATIENCE_S
        while lock._passes(lock._turnstile, 1):  # until it stands in the turnstile
            assert time.monotonic() < deadline
            time.sleep(0.01)
        waiting.end()
        with lock.shared():
            assert lock.held is Held.SHARED


def test_a_newcomer_does_not_overtake_who_waits_to_time(
    lock: DeviceLock, tmp_path: Path, holders: ExitStack
) -> None:
    judge = hold(holders, tmp_path, "shared")
    waiting = Holder(tmp_path, "exclusive")
    holders.callback(waiting.end)
    deadline = time.monotonic() + PATIENCE_S
    while lock._passes(lock._turnstile, 1):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(DeviceBusyError), lock.shared():
        pytest.fail("overtook the timing that waits")
    judge.end()
    assert waiting.says() == "in"


def test_timing_is_not_starved_by_many_busy_judges(tmp_path: Path, holders: ExitStack) -> None:
    for _ in range(4):
        hold(holders, tmp_path, "shared", JUDGE)
    timer = DeviceLock.of(tmp_path, "GPU-1", patience_s=PATIENCE_S)
    for _ in range(10):
        with timer.exclusive():
            pass
    (tmp_path / "stop").touch()
    assert timer.waited_s < PATIENCE_S / 2
    timer.close()


def test_a_judge_steps_aside_between_two_calls_and_comes_back(
    lock: DeviceLock, tmp_path: Path, holders: ExitStack
) -> None:
    timer = Holder(tmp_path, "exclusive")
    holders.callback(timer.end)
    patient = DeviceLock.of(tmp_path, "GPU-1")
    with patient.shared():
        deadline = time.monotonic() + PATIENCE_S
        while patient._passes(patient._turnstile, 1):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        released: list[str] = []

        def check() -> None:
            """Called while it waits: the timing is under way now, and is told to end."""
            if not released:
                released.append(timer.says())
                assert patient.held is Held.NOTHING
                assert timer.process.stdin is not None
                timer.process.stdin.write("go\n")
                timer.process.stdin.flush()

        patient.give_way(check)
        assert (released, patient.held) == (["in"], Held.SHARED)
        assert patient.waited_s > 0
    patient.close()


def test_who_waits_can_be_called_off(lock: DeviceLock, tmp_path: Path, holders: ExitStack) -> None:
    hold(holders, tmp_path, "exclusive")

    def check() -> None:
        raise KeyError("cancelled")

    with pytest.raises(KeyError), lock.shared(check):
        pytest.fail("got in")
    with pytest.raises(KeyError), lock.exclusive(check):
        pytest.fail("got in")


def test_who_gave_up_waiting_to_time_leaves_the_turnstile_open(
    lock: DeviceLock, other: DeviceLock
) -> None:
    with other.shared():
        with pytest.raises(DeviceBusyError), lock.exclusive():
            pytest.fail("timed beside a judge")
        with lock.shared():
            assert lock.held is Held.SHARED


def test_timing_inside_judging_is_refused_rather_than_waited_for(lock: DeviceLock) -> None:
    with lock.shared(), pytest.raises(RuntimeError, match="held already"), lock.exclusive():
        pytest.fail("waited for itself")


def test_an_exception_inside_lets_go(lock: DeviceLock, other: DeviceLock) -> None:
    with pytest.raises(KeyError), lock.exclusive():
        raise KeyError
    with other.exclusive():
        assert lock.held is Held.NOTHING


def test_two_devices_do_not_wait_for_each_other(lock: DeviceLock, tmp_path: Path) -> None:
    second = DeviceLock.of(tmp_path, "GPU-2")
    with lock.exclusive(), second.exclusive():
        assert second.held is Held.EXCLUSIVE
    second.close()


def test_a_link_that_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kernelhub-GPU-3.turn").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        DeviceLock.of(tmp_path, "GPU-3")


def test_other_users_can_lock_what_a_strict_umask_made(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        DeviceLock.of(tmp_path, "GPU-4").close()
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("kernelhub-GPU-4.*")}
    assert modes == {0o644}


def test_the_files_are_not_handed_on_to_children(lock: DeviceLock, other: DeviceLock) -> None:
    with lock.exclusive():
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with other.exclusive():
            assert other.held is Held.EXCLUSIVE
    finally:
        child.kill()
        child.wait()


def test_a_processor_is_nobody_elses_to_time() -> None:
    environment = Environment(DeviceMode.CPU_INTERPRET, "cpu", "", "", "", "", "", "", "")
    first, second = device_lock(environment), device_lock(environment)
    with first.exclusive(), second.exclusive():
        assert first.held is second.held is Held.EXCLUSIVE


def test_the_folder_is_the_one_that_is_named(tmp_path: Path) -> None:
    assert lock_folder({"KERNELHUB_VERIFIER_LOCKS": str(tmp_path)}) == tmp_path


def test_a_machine_without_a_common_folder_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("verifier.device_lock._PLACES", (str(tmp_path),))
    with pytest.raises(InfrastructureError, match="KERNELHUB_VERIFIER_LOCKS"):
        lock_folder({})


def test_one_at_a_time_has_most_of_the_memory_and_the_others_judge_on(
    lock: DeviceLock, other: DeviceLock, tmp_path: Path, holders: ExitStack
) -> None:
    hold(holders, tmp_path, "room")
    with lock.shared(), other.shared(), pytest.raises(DeviceBusyError), lock.room():
        pytest.fail("two had it")
