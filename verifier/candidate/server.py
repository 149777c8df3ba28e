"""The referee's handle to one forkserver: start it, prove the cage, ask it things, end it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from verifier.candidate import outer, processes
from verifier.candidate.channel import Channel, DeadlineError, ProtocolError
from verifier.candidate.gpu import Gpu
from verifier.candidate.limits import Limits
from verifier.candidate.outer import Plan
from verifier.subject import InfrastructureError

_REQUEST_S: Final = 60.0
_WARM_S: Final = 300.0
_END_S: Final = 5.0


class ServerGoneError(InfrastructureError):
    """The forkserver died or stopped answering."""


class Server:
    """A running forkserver. Requests are serialised; any thread may make them."""

    def __init__(self, plan: Plan, limits: Limits, gpu: Gpu | None) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                outer.command(plan, theirs.fileno(), limits, gpu),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=outer.environment(limits, gpu) if plan.bubblewrap is None else {},
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._channel = Channel(ours)

    def request(
        self, op: str, body: dict[str, Any], fds: Sequence[int] = (), timeout_s: float = _REQUEST_S
    ) -> dict[str, Any]:
        """One request, its answer. Raises ServerGoneError, or InfrastructureError if it says no."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            try:
                self._channel.send({"op": op, **body}, fds, deadline)
                answer = self._channel.receive(deadline).body
            except (ProtocolError, DeadlineError, OSError, ValueError) as error:
                raise ServerGoneError(f"the forkserver is gone: {self._last_words()}") from error
        if not answer.get("ok"):
            raise InfrastructureError(f"the forkserver could not {op}: {answer.get('error')}")
        return answer

    def probe(self, limits: Limits, *, cuda: bool) -> str:
        """Build one empty cage; what isolates it, in words. Raises InfrastructureError."""
        cage = self.plan.cage(next(outer.numbers), limits, cuda=cuda)
        wire = outer.limits_wire(limits, cuda=cuda)
        found = self.request("probe", {"cage": cage.to_json(), "limits": wire})
        parts = [self.plan.name, *(["nested namespaces"] if cage.nesting != "none" else [])]
        if cage.filters:
            parts += [f"landlock {found['landlock']}"] if found["landlock"] else []
            parts += ["seccomp"] if found["seccomp"] else []
        return "+".join(parts + (["own uid"] if cage.uid else []))

    def warm(self, limits: Limits, *, cuda: bool) -> None:
        """Import the libraries; seconds."""
        self.request("warm", {"cuda": cuda, "threads": limits.threads}, timeout_s=_WARM_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _last_words(self) -> str:
        with suppress(OSError, ValueError):
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, self._errors.tell() - 2000))
            return self._errors.read().decode(errors="replace").strip() or "it said nothing"
        return "it said nothing"

    def close(self) -> None:
        """End the forkserver and with it every candidate. Never raises, may be called twice."""
        self._channel.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._kill()
        self._errors.close()

    def _kill(self) -> None:
        """The forkserver does not listen: kill it and all below, children first."""
        for pid in reversed(processes.census(self._process.pid).pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
