"""The supervised child: ``python -m verifier serve``, JSON lines in and out.

The kernel's and torch's processes are all below this child and in its process group; ending the
group ends them. The child also ends by itself when its standard input closes, that is, when the
agent dies in whatever way.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from verifier import records

LINE_NBYTES: Final = 32 << 20
"""Longest line: a verdict with its source and counterexamples is far shorter."""
BACKLOG: Final = 10_000
STDERR_LINES: Final = 40
STDERR_CHARACTERS: Final = 2_000
END_GRACE_S: Final = 2.0


class VerifierError(Exception):
    """The child did not start, died, or said something that is no line of the protocol."""


class DeviceSickError(VerifierError):
    """The child has examined its device and found it sick."""

    def __init__(self, message: str, report: records.HealthReport) -> None:
        super().__init__(message)
        self.report = report


def report_in(error: Exception) -> records.HealthReport | None:
    """The examination behind an error, if there was one."""
    return error.report if isinstance(error, DeviceSickError) else None


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to judge; the field names are the protocol's."""

    id: str
    task: str
    kernel: str
    entry: str
    seed: int
    gates: tuple[str, ...] | None = None
    measure: bool = True
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the child: a job's event, with its payload."""

    job: str
    event: str
    payload: Mapping[str, Any]

    def failure(self, message: str) -> VerifierError:
        """What an ``error`` line of the machinery means: a sick device, or a broken verifier."""
        if "health" not in self.payload:
            return VerifierError(message)
        return DeviceSickError(message, _report(self.payload["health"]))


class VerifierProcess:
    """One child from start to end; it is never restarted, a new one is made."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> None:
        try:
            self._child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise VerifierError(f"{argv[0]} cannot be started: {error}") from error
        self.health: records.HealthReport | None = None
        """What the child found when it last examined its device."""
        self._environment: records.Environment | None = None
        self._lines: queue.Queue[bytes | None] = queue.Queue(BACKLOG)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._ended = False
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True, name="verifier-stdout"),
            threading.Thread(target=self._read_stderr, daemon=True, name="verifier-stderr"),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not self._ended and self._child.poll() is None

    @property
    def environment(self) -> records.Environment:
        """The device and libraries that the child reported once it was warm."""
        assert self._environment is not None  # noqa: S101 - wait_ready() came first
        return self._environment

    def wait_ready(self, timeout_s: float, stop: threading.Event) -> None:
        """Until the child is warm, and has found its device healthy; else VerifierError."""
        deadline = time.monotonic() + timeout_s
        while not stop.is_set():
            if time.monotonic() > deadline:
                raise VerifierError(f"the verifier was not ready within {timeout_s:.0f} s")
            line = self.next_line(timeout_s=0.2)
            if line is not None and line.event == "health":
                self._examined(_report(line.payload))
            if line is not None and line.event == "ready":
                self._environment = _environment(line.payload)
                return
        raise VerifierError("the agent stops")

    def _examined(self, report: records.HealthReport) -> None:
        self.health = report
        if report.sick:
            raise DeviceSickError(f"the device is sick: {report.reason}", report)

    def submit(self, job: Job) -> None:
        self._write(records.to_json(job))

    def cancel(self, job_id: str) -> None:
        with contextlib.suppress(VerifierError):
            self._write({"cancel": job_id})

    def next_line(self, timeout_s: float) -> Line | None:
        """The next line, None when none came in time; VerifierError once the child has died."""
        try:
            raw = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if raw is None:
            self._lines.put(None)
            raise VerifierError(self._epitaph())
        return _parse(raw)

    def end(self) -> None:
        """Kills the whole process group, and waits until it is gone; safe to repeat."""
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._drain()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=END_GRACE_S)
        self._close()

    def _drain(self) -> None:
        """Lets a reader that waits for room in the backlog see the end of its pipe."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._lines.get_nowait()

    def _close(self) -> None:
        for reader in self._readers:
            reader.join(timeout=END_GRACE_S)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None  # noqa: S101 - opened as a pipe above
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise VerifierError(self._epitaph()) from error

    def _read_stdout(self) -> None:
        for raw in _bounded_lines(self._child.stdout):
            self._lines.put(raw)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        for raw in _bounded_lines(self._child.stderr):
            self._stderr.append(raw.decode("utf-8", "replace").rstrip()[:STDERR_CHARACTERS])

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=END_GRACE_S)
        self._readers[1].join(timeout=END_GRACE_S)
        last = "\n".join(self._stderr)[-STDERR_CHARACTERS:]
        return f"the verifier ended with exit code {self._child.returncode}: {last}"


def _bounded_lines(pipe: IO[bytes] | None) -> Iterator[bytes]:
    """The pipe's lines, cut at LINE_NBYTES, until its end."""
    if pipe is None:
        return
    with contextlib.suppress(ValueError, OSError):
        while raw := pipe.readline(LINE_NBYTES):
            yield raw


def _parse(raw: bytes) -> Line | None:
    """A protocol line; None for a blank one, VerifierError for anything else."""
    if not raw.strip():
        return None
    try:
        document = json.loads(raw)
        payload = document.get("payload") or {}
        return Line(str(document.get("id", "")), str(document["event"]), dict(payload))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise VerifierError(f"the verifier wrote no protocol line: {raw[:200]!r}") from error


def _report(payload: Any) -> records.HealthReport:
    try:
        return records.from_json(records.HealthReport, payload)
    except records.RecordError as error:
        raise VerifierError(f"the verifier wrote no health report: {error}") from error


def _environment(payload: Mapping[str, Any]) -> records.Environment:
    try:
        return records.from_json(records.Environment, payload)
    except records.RecordError as error:
        raise VerifierError(f"the verifier is not ready: {error}") from error
