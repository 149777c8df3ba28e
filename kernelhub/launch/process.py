"""One server process: how to start it, how to see that it works, how to stop it for good."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.files import open_private
from kernelhub.launch.system_user import SystemUser

PR_SET_PDEATHSIG: Final = 1
POLL_S: Final = 0.05
LIBC: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Service:
    """A long-running command. Secrets belong in ``env`` or in files, never in ``argv``."""

    name: str
    argv: tuple[str, ...]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    user: SystemUser | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_grace_s: float = 3.0
    stage: int = 1
    """A lower stage is stopped first: 0 node agents, 1 the hub, 2 what the hub stands on."""


def spawn(service: Service) -> subprocess.Popen[bytes]:
    """Starts the service in a session and process group of its own, its output in its log.

    The kernel signals the process when the thread that started it dies, so call this from the
    main thread. Raises LaunchError when the command cannot be executed.
    """
    with open_private(service.log) as log:
        try:
            return subprocess.Popen(
                service.argv,
                env=dict(service.env),
                cwd=service.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with(os.getpid(), service.stop_signal),
                **(service.user.identity() if service.user else {}),
            )
        except OSError as error:
            raise LaunchError(f"{service.name} cannot be started: {error}.") from error


def _die_with(parent: int, death_signal: signal.Signals) -> Callable[[], None]:
    """Runs in the child after it changed its user, which would clear the request."""

    def request() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # died between fork and prctl
            os.kill(os.getpid(), death_signal)

    return request


def stop(service: Service, process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: politely, then, after the grace, by SIGKILL."""
    signal_group(process.pid, service.stop_signal)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=service.stop_grace_s)
    # Whatever the leader left behind in its group goes too, also after a clean exit.
    signal_group(process.pid, signal.SIGKILL)
    process.wait()


def signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def wait_until(
    ready: Callable[[], bool], *, process: subprocess.Popen[bytes], timeout_s: float
) -> bool:
    """Polls until ready. False when the process ended or the time was up first."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if ready():
            return True
        time.sleep(POLL_S)
    return False


def log_tail(path: Path, *, lines: int = 3) -> str:
    """The log's last lines in one line, for an error message."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8", errors="replace")
    return " / ".join(text.strip().splitlines()[-lines:])
