"""Nothing outlives ``make run``: a small parent that sweeps up whatever its child leaves.

The keeper is the parent of the supervisor and the reaper of every orphan below it. When the
supervisor ends, for whatever reason, the keeper ends the rest. When the keeper itself is killed,
the kernel tells the supervisor, which then stops in the orderly way.

Started by ``make``, the keeper stops when make does. A terminal's Ctrl-C reaches both, and make
passes SIGTERM on by itself; but of any other signal meant for make alone, or of its death, nobody
would tell us, so the keeper looks.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kernelhub.launch.process import LIBC, PR_SET_PDEATHSIG

PR_SET_CHILD_SUBREAPER: Final = 36
SWEEP_GRACE_S: Final = 3.0
PARENT_CHECK_S: Final = 0.5
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def keep(body: Callable[[], int], *, stop_with_parent: bool = False) -> int:
    """Runs the body in a child process and returns its exit status, once nothing is left of it.

    ``stop_with_parent`` is for a parent such as make, whose end is meant for us too; a shell may
    well end while what it started goes on.
    """
    parent = os.getppid()
    handled = _handled(parent)  # before there is a child, by which somebody could know that we run
    adopt_orphans()
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(_run_child(body, keeper))
    for number in heeded(FORWARDED):
        signal.signal(number, lambda got, _frame: _forward(child, got))
    if stop_with_parent:
        _watch(parent, handled, child)
    status = _await(child)
    signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm while the interpreter ends would kill us
    sweep()
    return status


def heeded(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """The signals to listen to: `nohup` ignores SIGHUP for us, and we leave it at that."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [one for one in numbers if not (ignored and one is signal.SIGHUP)]


def _watch(parent: int, handled: int, child: int) -> None:
    """Asks the child to stop, once, when the parent has ended or was asked to end: when it handles
    other requests than those of ``handled``."""

    def look(_number: int, _frame: object) -> None:
        if os.getppid() == parent and _handled(parent) == handled:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        _forward(child, signal.SIGTERM)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, PARENT_CHECK_S, PARENT_CHECK_S)


def _handled(pid: int) -> int:
    """Which requests to end the process has handlers for, as a bit mask. GNU make drops a handler
    as soon as its signal arrives, and then waits for its children, which it tells nothing."""
    requests = sum(1 << (number - 1) for number in FORWARDED)
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16) & requests
    return 0


def adopt_orphans() -> None:
    """Descendants whose parent dies become our children instead of init's."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


def _run_child(body: Callable[[], int], keeper: int) -> int:
    # A group of its own: the terminal's Ctrl-C reaches the keeper alone, which passes it on once.
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != keeper:
        return 1
    adopt_orphans()
    try:
        return body()
    finally:
        sweep()


def _forward(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _await(child: int) -> int:
    """Reaps everything that ends until the child does; a signal counts as 128 plus its number."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def sweep() -> None:
    """Ends every descendant of this process: SIGTERM, and SIGKILL after a grace."""
    deadline = time.monotonic() + SWEEP_GRACE_S
    _signal_descendants(signal.SIGTERM)
    while _reap() and time.monotonic() < deadline:
        time.sleep(0.05)
    while _reap():
        _signal_descendants(signal.SIGKILL)
        time.sleep(0.02)


def _signal_descendants(number: signal.Signals) -> None:
    for pid in list(descendants(os.getpid())):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap() -> bool:
    """Collects ended children; whether any child, ended or not, was still there."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> Iterator[int]:
    """Process ids below the root, as far as /proc shows them at this moment."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    waiting = list(children.get(root, []))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, []))


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # The name, in brackets, may hold anything; the fields follow the last bracket.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(fields[1])
