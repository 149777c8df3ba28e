"""A warm verifier as a child process: ``python -m verifier serve``, JSON lines in and out.

The audit never judges in its own process. What crashes, hangs or leaks there ends with the child,
and costs the one kernel that it was judging.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from verifier.records import RecordError, Verdict, from_json

READY_S: Final = 180.0
END_S: Final = 5.0
GRACE_FACTOR: Final = 1.5
GRACE_S: Final = 60.0
"""A kernel is given up when its time limit, times the factor and plus this, has passed: the child
keeps the limit itself, so something hangs that is not the kernel."""

HEALTH: Final = "health"
_STDERR_LINES: Final = 12
_LINE_NBYTES: Final = 64 << 20


class WorkerError(Exception):
    """The child died, hung, or spoke no JSON lines."""


class Refused(Exception):
    """The child says that it cannot judge this job. ``kind`` is 'task' or 'infrastructure'."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Worker:
    """One child, from its start until ``end``. Not for use by two threads at once."""

    def __init__(self, number: int, device: str, options: Sequence[str] = ()) -> None:
        self.number = number
        command = [sys.executable, "-m", "verifier", "serve", "--device", device, *options]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        for reader in (self._read_lines, self._read_stderr):
            threading.Thread(target=reader, daemon=True).start()
        self.judged = 0
        self._wait_ready()

    # --- talking to it

    def judge(self, name: str, job: Mapping[str, Any], limit_s: float) -> Verdict:
        """The verdict on one job. Raises Refused, or WorkerError after which the child is gone."""
        self._send({"id": name, "time_limit_s": limit_s, **job})
        deadline = time.monotonic() + limit_s * GRACE_FACTOR + GRACE_S
        while True:
            line = self._next(deadline)
            if line.get("id") != name:
                continue
            payload = line.get("payload", {})
            if line["event"] == "verdict":
                self.judged += 1
                return _verdict(payload)
            if line["event"] == "error":
                raise Refused(str(payload.get("kind")), str(payload.get("message")))

    def rss_mib(self) -> int:
        """Memory that the judging process itself holds; 0 where the system does not say."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{self._child.pid}/statm").read_text(encoding="ascii").split()
            return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
        return 0

    def end(self) -> None:
        """Kill the child and all that it started; safe to repeat."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(END_S)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    # --- lines

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        event: object = HEALTH
        while event == HEALTH:  # what it says of the device, before it is ready or gives up
            event = self._next(deadline).get("event")
        if event != "ready":
            self.end()
            raise WorkerError(f"the verifier said {event!r} before it was ready")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None  # noqa: S101 - opened as a pipe above
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._lost() from error

    def _next(self, deadline: float) -> dict[str, Any]:
        """The next line as a document. Raises WorkerError when none comes in time."""
        try:
            raw = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            self.end()
            raise WorkerError("the verifier stopped answering and was killed") from None
        if raw is None:
            raise self._lost()
        try:
            document = json.loads(raw)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            self.end()
            raise WorkerError(f"the verifier wrote no JSON line: {raw[:200]!r}")
        return document

    def _lost(self) -> WorkerError:
        self.end()
        last = " | ".join(line for line in self._stderr if line)[-400:]
        return WorkerError(f"the verifier died with code {self._child.returncode}: {last}")

    def _read_lines(self) -> None:
        _pump(self._child.stdout, self._lines.put)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        _pump(self._child.stderr, lambda raw: self._stderr.append(raw.decode(errors="replace")))


def _pump(pipe: IO[bytes] | None, take: Any) -> None:
    assert pipe is not None  # noqa: S101 - opened as a pipe above
    with contextlib.suppress(OSError, ValueError):
        while raw := pipe.readline(_LINE_NBYTES):
            take(raw.rstrip())


def _verdict(payload: Any) -> Verdict:
    try:
        return from_json(Verdict, payload)
    except RecordError as error:
        raise Refused("infrastructure", f"the verdict does not fit its record: {error}") from error
