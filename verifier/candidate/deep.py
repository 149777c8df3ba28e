"""The trusted handle to a candidate that a tool has started and looks into.

One bubblewrap of its own for each of them: pid 1 keeps the leash (``deep_boot``), the tool starts
the host (``deep_host``), and both stand behind the limits and filters of any candidate. The tool
writes into memory files that it is handed; the host lets go of its copies before there is a kernel,
and can reach the tool's neither by path nor by process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from verifier.candidate import outer
from verifier.candidate.channel import Channel, DeadlineError, ProtocolError
from verifier.candidate.client import Candidate, Process, Sandbox
from verifier.candidate.isolation import Nesting
from verifier.candidate.limits import Limits
from verifier.candidate.log import LogPipe
from verifier.candidate.outer import TOOL
from verifier.subject import Arg, InfrastructureError, Reply

REPORT_NBYTES: Final = 16 << 20
"""A greater report is not read."""
_LOAD_S: Final = 90.0
"""Torch is imported and the device opened under the tool before there is a kernel to load."""
_ALL_S: Final = 120.0
"""For loading and all calls of one run of the tool."""
_END_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be started: a program in the tool's folder, and its options. "{0}" and "{1}" among
    them become the places that its two reports go to."""

    folder: Path
    program: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How the tool ended (None: it was ended), why, and its two reports; None: too large."""

    status: int | None
    reason: str
    reports: tuple[bytes | None, bytes | None]


class ToolProcess:
    """One run of the tool: what a forkserver is to other candidates."""

    def __init__(
        self, sandbox: Sandbox, limits: Limits, order: Order, channel_fd: int, log: LogPipe
    ) -> None:
        self._log = log
        self._files = [os.memfd_create("report", os.MFD_CLOEXEC) for _ in range(2)]
        ours, theirs = socket.socketpair()
        self._leash = Channel(ours)
        with theirs:
            fds = (theirs.fileno(), log.write_fd, channel_fd, *self._files)
            text = json.dumps(_order(sandbox, limits, order, *fds))
            self._process = subprocess.Popen(
                outer.command_beside(
                    sandbox.plan,
                    limits,
                    sandbox.gpu,
                    sandbox.engine,
                    "deep_boot",
                    text,
                    order.folder,
                ),
                stdin=subprocess.DEVNULL,
                stdout=log.write_fd,
                stderr=log.write_fd,
                env={},
                cwd="/",
                pass_fds=fds,
                start_new_session=True,
            )

    def request(self, op: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a forkserver knows of a process's end, nobody knows before the tool's."""
        return {"reason": "", "status": None}

    def wait(self, seconds: float) -> Ended:
        """Let it end by itself, which it does once the host's channel is closed; read its reports.
        The log is drained meanwhile."""
        deadline = time.monotonic() + seconds
        said: Mapping[str, Any] = {}
        with suppress(ProtocolError, DeadlineError):
            said = self._leash.receive(deadline, {self._log.fd: self._log.drain}).body
        self.close()
        first, second = map(_contents, self._files)
        return Ended(said.get("status"), str(said.get("reason", "")), (first, second))

    def stop(self) -> None:
        """End it and everything in its sandbox, from any thread and without waiting."""
        self._leash.hang_up()

    def close(self) -> None:
        """The same, and wait for it. May be called twice."""
        self.stop()
        self._leash.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._log.drain()

    def release(self) -> None:
        """Close what the reports were read from."""
        for fd in self._files:
            os.close(fd)


def _order(
    sandbox: Sandbox,
    limits: Limits,
    order: Order,
    leash_fd: int,
    log_fd: int,
    channel_fd: int,
    *files: int,
) -> dict[str, Any]:
    """What pid 1 is told; within it, the command line of the tool; within that, the host's."""
    plan = replace(sandbox.plan, nesting=Nesting.NONE)
    cage = plan.cage(next(outer.numbers), limits, cuda=sandbox.cuda)
    wire = outer.limits_wire(limits, sandbox.engine)
    host = {
        "channel_fd": channel_fd,
        "close_fds": files,
        "scratch": cage.scratch,
        "filters": cage.filters,
        "cuda": cage.cuda,
        "engine": sandbox.engine,
        "threads": limits.threads,
        "limits": wire,
    }
    places = [f"/proc/self/fd/{fd}" for fd in files]
    options = [option.format(*places) for option in order.options]
    target = outer.python_command("deep_host", json.dumps(host))
    return {
        "cage": cage.to_json(),
        "limits": wire,
        "leash_fd": leash_fd,
        "log_fd": log_fd,
        "tool_fds": [channel_fd, *files],
        "command": [f"{TOOL}/{order.program}", *options, *target],
    }


def _contents(fd: int) -> bytes | None:
    nbytes = os.fstat(fd).st_size
    return os.pread(fd, nbytes, 0) if nbytes <= REPORT_NBYTES else None


class DeepCandidate(Candidate):
    """One kernel in a process that a tool has started; it is called by ``examine`` alone."""

    def __init__(self, sandbox: Sandbox, source: bytes, how: dict[str, Any], order: Order) -> None:
        super().__init__(sandbox, source, how)
        self._limits = replace(sandbox.limits, load_s=_LOAD_S)
        self._order = order
        self._tool: ToolProcess | None = None
        self._deadline: float | None = None
        self._stopped = False

    def examine(self, args: Sequence[Arg], config: int) -> Reply:
        """Call the kernel and read what it returns, autotuners taking their ``config``-th
        configuration. Raises InfrastructureError only."""
        self._deadline = self._deadline or time.monotonic() + _ALL_S
        left_s = max(1.0, self._deadline - time.monotonic())
        body = {"op": "examine", "config": config}
        return self.demand(body, args, timeout_s=left_s).reply

    def finish(self) -> Ended | None:
        """The host may end; what the tool has to say of it. None if it was not started."""
        self._end(grace=False)
        return self._tool.wait(_END_S) if self._tool is not None else None

    def stop(self) -> None:
        """End the tool and the host, from any thread; it will not be started any more."""
        self._stopped = True
        if self._tool is not None:
            self._tool.stop()

    def close(self) -> None:
        super().close()
        if self._tool is not None:
            self._tool.close()
            self._tool.release()
            self._tool = None

    def _end(self, *, grace: bool) -> dict[str, Any]:
        """Let the host go, however the call ended; what the tool knows of it is still to come."""
        process, self._process = self._process, None
        if process is not None:
            process.channel.close()
        return {"reason": "", "status": None}

    def _spawn(self, *, cuda: bool | None = None) -> Process:
        if self._stopped or self._tool is not None:
            raise InfrastructureError("the tool runs once for one kernel")
        ours, theirs = socket.socketpair()
        with theirs:
            self._tool = ToolProcess(
                self._sandbox, self._limits, self._order, theirs.fileno(), self._log
            )
        if self._stopped:  # in the meantime
            self._tool.stop()
        return Process(self._tool, False, 0, Channel(ours))
