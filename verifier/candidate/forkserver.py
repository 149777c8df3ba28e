"""The forkserver: warm, trusted, inside the outer sandbox. It forks cages and never runs a kernel.

It imports torch and Triton once, never touches a device, and obeys the referee over one control
channel: probe, warm, spawn, reap, census, load. When the channel closes, however the referee
ended, it exits; being pid 1 of the outer sandbox it takes everything inside along.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verifier.candidate import isolation, landlock, processes, seccomp, syscalls
from verifier.candidate.channel import Channel, ChannelClosedError, DeadlineError, Message
from verifier.candidate.engine import Engine
from verifier.candidate.isolation import Cage, Nesting

_WATCH_S: Final = 0.1
_SETUP_S: Final = 20.0
_GRACE_S: Final = 1.0
_HOST_FAILED: Final = 82

Body = dict[str, Any]
HostRun = Callable[[int, Cage, Mapping[str, float]], None]


@dataclass(slots=True)
class _Slot:
    """One candidate: its init, the pipe on which init reports, and what we hold against it."""

    cage: Cage
    limits: Mapping[str, float]
    init: int
    report: int
    lines: bytes = b""
    gone: bool = False
    reason: str = ""


class Forkserver:
    """Serves one control channel until it closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._slots: dict[int, _Slot] = {}
        self._spinner = 0
        self._baseline_bytes = 0
        self._host: HostRun | None = None

    def serve(self) -> None:
        """Answer requests; between them, watch what the candidates use."""
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        while True:
            deadline = time.monotonic() + _WATCH_S if self._slots else None
            try:
                message = self._channel.receive(deadline, fds=True)
            except DeadlineError:
                self._watch()
                continue
            except ChannelClosedError:
                self._end_all()
                return
            self._channel.send(self._answer(message))

    def _end_all(self) -> None:
        """The referee is gone. Where we are pid 1 our end would do; elsewhere nobody else would."""
        for slot in self._slots.values():
            self._end(slot)
        if self._spinner:
            os.kill(self._spinner, signal.SIGKILL)

    def _answer(self, message: Message) -> Body:
        try:
            action = getattr(self, f"_op_{message.body['op']}")
            return {"ok": True, **action(message)}
        except Exception as error:  # noqa: BLE001 - the referee decides what to make of it
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
        finally:
            for fd in message.fds:
                os.close(fd)

    # -- requests ----------------------------------------------------------------------------

    def _op_probe(self, message: Message) -> Body:
        """Really build a cage around a process that does nothing."""
        cage = Cage.from_json(message.body["cage"])
        slot = self._fork(cage, message.body["limits"], lambda *_: None, -1)
        self._wait_report(slot, b"status", _GRACE_S)
        self._end(slot)
        return {"landlock": landlock.abi(), "seccomp": os.uname().machine in seccomp.MACHINES}

    def _op_warm(self, message: Message) -> Body:
        """Import everything that a candidate needs, so that forks are cheap."""
        gc.disable()  # what imports make stays: to look for garbage again and again is wasted
        from verifier.candidate import host

        host.warm(engine=Engine(message.body["engine"]), threads=int(message.body["threads"]))
        self._host = host.run
        gc.collect()
        gc.freeze()
        gc.enable()
        self._baseline_bytes = processes.anonymous_bytes(os.getpid())
        return {"baseline_bytes": self._baseline_bytes}

    def _op_spawn(self, message: Message) -> Body:
        if self._host is None:
            raise RuntimeError("not warm")
        body = message.body
        cage = _scratch_make(Cage.from_json(body["cage"]))
        channel_fd, log_fd = message.fds
        host = self._host
        self._slots[body["slot"]] = self._fork(cage, body["limits"], host, channel_fd, log_fd)
        return {}

    def _op_reap(self, message: Message) -> Body:
        """End a candidate and all that it started; how its host ended, if it had already."""
        slot = self._slots.pop(message.body["slot"], None)
        if slot is None:
            return {"reason": "", "status": None}
        if message.body["grace"]:
            self._wait_report(slot, b"status", _GRACE_S)
        self._end(slot)
        return {"reason": slot.reason, "status": _status_in(slot.lines)}

    def _op_census(self, message: Message) -> Body:
        slot = self._slots[message.body["slot"]]
        return {"processes": processes.descendants_count(slot.init)}

    def _op_load(self, message: Message) -> Body:
        """Start or pause a process that keeps one core busy."""
        if not self._spinner:
            self._spinner = os.fork() or _spin()
        os.kill(self._spinner, signal.SIGCONT if message.body["on"] else signal.SIGSTOP)
        return {}

    # -- forking -----------------------------------------------------------------------------

    def _fork(
        self,
        cage: Cage,
        limits: Mapping[str, float],
        run: HostRun,
        channel_fd: int,
        log_fd: int = 2,
    ) -> _Slot:
        read, write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(read)
            self._let_go()
            _Birth(cage, limits, run, channel_fd, log_fd, write).begin()
        os.close(write)
        os.waitpid(pid, 0)
        slot = _Slot(cage, limits, 0, read)
        self._wait_report(slot, b"ready", _SETUP_S)
        slot.init = next((line["init"] for line in _lines(slot.lines) if "init" in line), 0)
        error = next((line["error"] for line in _lines(slot.lines) if "error" in line), "")
        if error or not slot.init or b"ready" not in slot.lines:
            self._end(slot)
            raise RuntimeError(error or "the cage was not built in time")
        return slot

    def _let_go(self) -> None:
        """In the child: nothing of the forkserver's or of other candidates' stays open."""
        self._channel.close()
        for slot in self._slots.values():
            os.close(slot.report)

    def _wait_report(self, slot: _Slot, word: bytes, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while word not in slot.lines and b"error" not in slot.lines:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([slot.report], [], [], left)[0]:
                return
            data = os.read(slot.report, 65536)
            if not data:
                return
            slot.lines += data

    def _end(self, slot: _Slot) -> None:
        """Kill what is left and release everything that we held for it."""
        if slot.cage.nesting is Nesting.NONE:
            _kill_tree(slot)
        if slot.init and not slot.gone:
            with suppress(ProcessLookupError):
                os.kill(slot.init, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(slot.init, 0)
        self._wait_report(slot, b"status", 0.0)
        os.close(slot.report)
        _scratch_remove(slot.cage)
        self._reap_orphans()

    # -- watching ----------------------------------------------------------------------------

    def _watch(self) -> None:
        self._reap_orphans()
        for slot in self._slots.values():
            if not slot.gone and not slot.reason:
                self._judge(slot)

    def _judge(self, slot: _Slot) -> None:
        found = processes.census(slot.init, self._baseline_bytes)
        if found.memory_bytes > slot.limits["resident_bytes"]:
            slot.reason = "memory"
        elif found.threads > slot.limits["processes"] + 8:
            slot.reason = "processes"
        if slot.reason:
            os.kill(slot.init, signal.SIGKILL)
            if slot.cage.nesting is Nesting.NONE:
                _kill_tree(slot)

    def _reap_orphans(self) -> None:
        by_init = {slot.init: slot for slot in self._slots.values()}
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if pid in by_init:
                    by_init[pid].gone = True


@dataclass(frozen=True, slots=True)
class _Birth:
    """The three forks after which a host runs: stepping stone, init, host."""

    cage: Cage
    limits: Mapping[str, float]
    run: HostRun
    channel_fd: int
    log_fd: int
    report: int

    def begin(self) -> None:
        """In the first child: make the namespaces, leave init behind. Does not return."""
        try:
            isolation.namespaces_enter(self.cage)
            pid = os.fork()
            if pid == 0:
                self._init()
            self._say({"init": pid})
        except BaseException as error:  # noqa: BLE001
            self._say({"error": f"{type(error).__name__}: {error}"})
        os._exit(0)

    def _init(self) -> None:
        try:
            isolation.init_settle(self.cage)
            host = os.fork()
            if host == 0:
                self._become_host()
            self._close(self.channel_fd, self.log_fd)
            self._say({"status": os.waitstatus_to_exitcode(_wait_for(host))})
        except BaseException as error:  # noqa: BLE001
            self._say({"error": f"{type(error).__name__}: {error}"})
        os._exit(0)

    def _become_host(self) -> None:
        try:
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
            os.setsid()
            isolation.streams(self.log_fd)
            isolation.limits_set(self.limits, self.cage)
            isolation.filters_set(self.cage)
            self._say({"ready": True})
        except BaseException as error:  # noqa: BLE001
            self._say({"error": f"{type(error).__name__}: {error}"})
            os._exit(1)
        os.close(self.report)
        try:
            self.run(self.channel_fd, self.cage, self.limits)
        except BaseException:  # noqa: BLE001 - nothing may unwind into init's code
            traceback.print_exc()
            os._exit(_HOST_FAILED)
        os._exit(0)

    def _say(self, line: Body) -> None:
        os.write(self.report, json.dumps(line).encode() + b"\n")

    def _close(self, *fds: int) -> None:
        for fd in fds:
            if fd > 2:
                os.close(fd)


def _wait_for(child: int) -> int:
    """Reap everything (we are init) until ``child`` has ended; its wait status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _spin() -> int:
    while True:
        pass


def _lines(data: bytes) -> list[Body]:
    return [json.loads(line) for line in data.split(b"\n") if line.strip()]


def _status_in(data: bytes) -> int | None:
    return next((line["status"] for line in _lines(data) if "status" in line), None)


def _scratch_make(cage: Cage) -> Cage:
    """Without namespaces a candidate gets a directory of its own instead of a private /tmp."""
    if cage.nesting is not Nesting.NONE:
        return cage
    made = tempfile.mkdtemp(prefix="kernel-", dir=cage.scratch)
    if cage.uid is not None:
        os.chown(made, cage.uid, cage.uid)
    return Cage.from_json({**cage.to_json(), "scratch": made})


def _scratch_remove(cage: Cage) -> None:
    if cage.nesting is Nesting.NONE and Path(cage.scratch).name.startswith("kernel-"):
        shutil.rmtree(cage.scratch, ignore_errors=True)


def _kill_tree(slot: _Slot) -> None:
    """Without a pid namespace: freeze and kill descendants until none is left."""
    for _ in range(100):
        others = [pid for pid in processes.census(slot.init).pids if pid != slot.init]
        if not others:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in others:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        time.sleep(0.005)


def main(fd: int) -> None:
    """Serve the control channel ``fd`` until the referee closes it."""
    Forkserver(Channel.from_fd(fd)).serve()
