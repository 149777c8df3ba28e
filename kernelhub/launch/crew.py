"""The processes of one launch: started, restarted when they die, stopped together."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.process import Service, log_tail, signal_group, spawn, stop, wait_until
from kernelhub.launch.var import log_bound

BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MAX_S: Final = 30.0
STEADY_S: Final = 60.0
"""A process that lived this long starts over with the shortest pause."""
LOG_CHECK_S: Final = 5.0


@dataclass(slots=True)
class Member:
    """One service and what has become of it."""

    service: Service
    process: subprocess.Popen[bytes]
    started_s: float
    pause_s: float = BACKOFF_FIRST_S
    due_s: float | None = None
    """When to start it again; None while it runs."""


@dataclass(slots=True)
class Crew:
    """``say`` gets a line for each thing that a person should know; ``check`` may end any wait."""

    say: Callable[[str], None]
    check: Callable[[], None]
    members: list[Member] = field(default_factory=list)
    _logs_checked_s: float = 0.0

    def start(self, service: Service) -> Member:
        member = Member(service, spawn(service), time.monotonic())
        self.members.append(member)
        return member

    def start_and_wait(
        self, service: Service, ready: Callable[[], bool], *, timeout_s: float, tries: int = 1
    ) -> Member:
        """Starts and waits until ready. LaunchError with the log's last line otherwise."""
        member = self.start(service)
        try:
            self.wait(member, ready, timeout_s=timeout_s)
        except LaunchError:
            if tries == 1:
                raise
            self.members.remove(member)
            stop(service, member.process)
            time.sleep(BACKOFF_FIRST_S)
            return self.start_and_wait(service, ready, timeout_s=timeout_s, tries=tries - 1)
        return member

    def wait(self, member: Member, ready: Callable[[], bool], *, timeout_s: float) -> None:
        def ready_or_stopped() -> bool:
            self.check()
            return ready()

        if wait_until(ready_or_stopped, process=member.process, timeout_s=timeout_s):
            return
        service = member.service
        raise LaunchError(f"{service.name} did not start: {_reason(service)} (see {service.log})")

    def tick(self) -> None:
        """Notices deaths, starts again what is due, keeps logs bounded. Call it often."""
        now = time.monotonic()
        for member in self.members:
            self._tend(member, now)
        if now - self._logs_checked_s > LOG_CHECK_S:
            self._logs_checked_s = now
            for member in self.members:
                log_bound(member.service.log)

    def stop(self, *, patient: Callable[[], bool]) -> None:
        """Ends all, stage after stage; a service that is slow, or a person who is, gets SIGKILL."""
        for stage in sorted({one.service.stage for one in self.members}):
            self._stop_stage([one for one in self.members if one.service.stage == stage], patient)
        self.members.clear()

    def _stop_stage(self, members: list[Member], patient: Callable[[], bool]) -> None:
        for member in members:
            signal_group(member.process.pid, member.service.stop_signal)
        for member in members:
            self._await(member, patient)
        for member in members:
            # Whatever a leader left behind in its group goes too.
            signal_group(member.process.pid, signal.SIGKILL)
            member.process.wait()

    def _await(self, member: Member, patient: Callable[[], bool]) -> None:
        deadline = time.monotonic() + member.service.stop_grace_s
        while patient() and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(timeout=0.05)
                return

    def _tend(self, member: Member, now: float) -> None:
        if member.due_s is not None:
            self._restart_when_due(member, now)
        elif (status := member.process.poll()) is not None:
            self._mourn(member, status, now)

    def _mourn(self, member: Member, status: int, now: float) -> None:
        """Ends the rest of the dead leader's group and plans the restart."""
        signal_group(member.process.pid, signal.SIGKILL)
        steady = now - member.started_s > STEADY_S
        pause_s = BACKOFF_FIRST_S if steady else member.pause_s
        member.due_s = now + pause_s
        member.pause_s = min(pause_s * 2, BACKOFF_MAX_S)
        service = member.service
        self.say(
            f"{service.name} ended ({_ending(status)}): {_reason(service)}; starting it again in "
            f"{pause_s:g} s (see {service.log})"
        )

    def _restart_when_due(self, member: Member, now: float) -> None:
        if member.due_s is None or now < member.due_s:
            return
        member.process = spawn(member.service)
        member.started_s, member.due_s = now, None


def _ending(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _reason(service: Service) -> str:
    tail = log_tail(service.log, lines=1)
    if "No space left on device" in log_tail(service.log, lines=20):
        return "the disk is full: free some space"
    return tail or "it said nothing"
