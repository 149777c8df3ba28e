"""`python -m verifier serve`: stay warm, judge one kernel after the other. JSON lines in and out.

The node agent is the only caller. A reader thread takes jobs and cancellations from stdin while the
main thread judges; the end of stdin ends the process.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verifier.commands.exit_codes import ExitCode
from verifier.commands.verify import add_device_arguments
from verifier.contract import TaskError
from verifier.health.watch import HUNG, DeviceSickError
from verifier.pipeline import Cancelled
from verifier.records import HealthReport, to_json
from verifier.session import Session, UsageError, job_from_json, printable, progress_line
from verifier.subject import InfrastructureError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `serve`."""
    add_device_arguments(parser)
    parser.add_argument(
        "--sharers",
        type=int,
        default=1,
        metavar="N",
        help="so many verifiers, this one included, judge on the device (default: 1)",
    )


@dataclass(slots=True)
class Inbox:
    """Jobs waiting, and which of them somebody no longer wants."""

    jobs: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)
    cancelled: set[str] = field(default_factory=set)

    def read(self) -> None:
        """Take lines until stdin ends. A line that is no JSON object is answered and dropped."""
        try:
            for line in sys.stdin.buffer:
                self._take(line)
        finally:
            self.jobs.put(None)

    def _take(self, line: bytes) -> None:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            say({"event": "error", "payload": _problem("usage", f"not JSON: {error}")})
            return
        if not isinstance(document, dict):
            say({"event": "error", "payload": _problem("usage", "a line must be a JSON object")})
        elif "cancel" in document:
            self.cancelled.add(str(document["cancel"]))
        else:
            self.jobs.put(document)


def say(document: Mapping[str, Any]) -> None:
    """Print one line at once."""
    sys.stdout.write(json.dumps(printable(document), separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _problem(kind: str, message: str, advice: str = "") -> dict[str, Any]:
    return {"kind": kind, "message": message, "advice": advice}


def _say_health(report: HealthReport) -> None:
    say({"event": "health", "payload": to_json(report)})


def _hung(report: HealthReport) -> None:
    """The device does not answer, so the main thread never will: say so and end."""
    _say_health(report)
    sys.stderr.write(f"the device is sick: {report.reason}\n")
    sys.stderr.flush()
    os._exit(HUNG)


def _judge(session: Session, inbox: Inbox, document: Mapping[str, Any]) -> None:
    """Judge one job; its last line is verdict, error or cancelled."""
    name = str(document.get("id", ""))

    def check() -> None:
        if name in inbox.cancelled:
            raise Cancelled

    def emit(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    try:
        check()
        job = job_from_json(document)
        session.judge(job, lambda progress: emit(progress_line(progress, name)), check)
    except Cancelled:
        say({"id": name, "event": "cancelled", "payload": {}})
    except (TaskError, UsageError) as error:
        say({"id": name, "event": "error", "payload": _problem("task", str(error))})
    except Exception as error:  # noqa: BLE001 - the jobs behind this one must not be lost with it
        session.watch.suspicion = type(error).__name__
        known = isinstance(error, InfrastructureError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        problem = _problem("infrastructure", message, "the job may be tried again")
        if isinstance(error, DeviceSickError):
            problem["health"] = to_json(error.report)
        say({"id": name, "event": "error", "payload": problem})
    finally:
        inbox.cancelled.discard(name)  # another job may bear the name again


def run(args: argparse.Namespace) -> ExitCode:
    """Serve until stdin ends, or until the device is found sick."""
    inbox = Inbox()
    with Session(args.device, unsafe=args.unsafe_no_sandbox, sharers=args.sharers) as session:
        session.watch.hung = _hung
        if not _fit(session.watch.start()):
            return ExitCode.INFRASTRUCTURE
        say({"event": "ready", "payload": to_json(session.environment)})
        threading.Thread(target=inbox.read, daemon=True).start()
        while (document := inbox.jobs.get()) is not None:
            _judge(session, inbox, document)
            if session.watch.suspicion and not _fit(session.watch.examine("after a job")):
                return ExitCode.INFRASTRUCTURE
    return ExitCode.CLEAN


def _fit(report: HealthReport) -> bool:
    _say_health(report)
    return not report.sick
