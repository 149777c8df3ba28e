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
from verifier.candidate.engine import Engine
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

    def __init__(self, plan: Plan, limits: Limits, gpu: Gpu | None, engine: Engine) -> None:
        self.plan = plan
        self._engine = engine
        self._warming = False
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                outer.command(plan, theirs.fileno(), limits, gpu, engine),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=outer.environment(limits, gpu, engine) if plan.bubblewrap is None else {},
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._channel = Channel(ours)

    def request(
        self, op: str, body: dict[str, Any], fds: Sequence[int] = (), timeout_s: float = _REQUEST_S
    ) -> dict[str, Any]:
        """One request, its answer. Raises ServerGoneError, or InfrastructureError if it says no."""
        with self._lock:
            if self._warming:
                self._answer("warm", time.monotonic() + _WARM_S)
                self._warming = False
            deadline = time.monotonic() + timeout_s
            self._send(op, body, fds, deadline)
            return self._answer(op, deadline)

    def _send(self, op: str, body: dict[str, Any], fds: Sequence[int], deadline: float) -> None:
        try:
            self._channel.send({"op": op, **body}, fds, deadline)
        except (ProtocolError, DeadlineError, OSError, ValueError) as error:
            raise self._gone() from error

    def _answer(self, op: str, deadline: float) -> dict[str, Any]:
        try:
            answer = self._channel.receive(deadline).body
        except (ProtocolError, DeadlineError, OSError, ValueError) as error:
            raise self._gone() from error
        if not answer.get("ok"):
            raise InfrastructureError(f"the forkserver could not {op}: {answer.get('error')}")
        return answer

    def _gone(self) -> ServerGoneError:
        return ServerGoneError(f"the forkserver is gone: {self._last_words()}")

    def probe(self, limits: Limits) -> str:
        """Build one empty cage; what isolates it, in words. Raises InfrastructureError."""
        cage = self.plan.cage(next(outer.numbers), limits, cuda=self._engine is Engine.GPU)
        wire = outer.limits_wire(limits, self._engine)
        found = self.request("probe", {"cage": cage.to_json(), "limits": wire})
        parts = [self.plan.name, *(["nested namespaces"] if cage.nesting != "none" else [])]
        if cage.filters:
            parts += [f"landlock {found['landlock']}"] if found["landlock"] else []
            parts += ["seccomp"] if found["seccomp"] else []
        return "+".join(parts + (["own uid"] if cage.uid else []))

    def warm(self, limits: Limits) -> None:
        """Begin to import the libraries (seconds). Whatever is asked next waits for that."""
        body = {"engine": self._engine, "threads": limits.threads}
        with self._lock:
            self._send("warm", body, (), time.monotonic() + _REQUEST_S)
            self._warming = True

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
        if self._warming:  # it would not listen for seconds
            self._kill()
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
        with suppress(subprocess.TimeoutExpired):  # a hung device keeps even killed processes
            self._process.wait(_END_S)
