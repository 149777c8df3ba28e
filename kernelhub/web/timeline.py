"""A run's events in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from kernelhub.web.catalogue import GATES, LOOKS, status_word
from kernelhub.web.present import plural
from kernelhub.web.text import reason_line, strip_control
from verifier.records import GateId, GateStatus
from verifier.wording import Faults

Payload = Mapping[str, Any]


class EventLike(Protocol):
    kind: str
    payload: Any
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the timeline: when, since a node took the run; what; in words; in which tone.

    ``offset`` is '' until a node took it.
    """

    at: datetime
    offset: str
    what: str
    text: str
    tone: str


def timeline(events: Sequence[EventLike], queued_at: datetime) -> list[Line]:
    """The events as rows. Each attempt counts from its own start: how long a run waited before
    says nothing about it, and stands once, where the wait ends."""
    lines: list[Line] = []
    taken_at, faults = None, Faults()
    for event in events:
        if event.kind == "leased":
            taken_at, faults = event.created_at, Faults()
        lines.append(_line(event, taken_at, queued_at, faults))
        queued_at = event.created_at if event.kind == "requeued" else queued_at
    return lines


def _line(event: EventLike, start: datetime | None, queued_at: datetime, faults: Faults) -> Line:
    payload = event.payload if isinstance(event.payload, dict) else {}
    what, words = WORDS.get(event.kind, (event.kind, lambda _: ""))
    text = reason_line(words(payload), 240)
    if event.kind == "gate":
        what = f"gate {str(payload.get('gate', ''))[1:]}"
        text = _gate(payload, faults)
    elif event.kind == "leased":
        text += f", after {_duration(event.created_at - queued_at)} in the queue"
    offset = _duration(event.created_at - start) if start else ""
    return Line(event.created_at, offset, what, text, _tone(event.kind, payload))


def _duration(passed: timedelta) -> str:
    seconds = max(0.0, passed.total_seconds())
    return f"{seconds:.3f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _tone(kind: str, payload: Payload) -> str:
    if kind in ("errored", "attempt_lost"):
        return "error"
    status = payload.get("status")
    if kind != "gate" or status not in set(GateStatus):
        return ""
    css = LOOKS[GateStatus(status)].css
    return css if css in ("fail", "maybe", "error") else ""


def _gate(payload: Payload, faults: Faults) -> str:
    """The finding and its reason; a reason that an earlier gate gave is not said again."""
    gate, status = str(payload.get("gate", "")), str(payload.get("status", ""))
    reason = strip_control(str(payload.get("reason") or ""))
    first = faults.earlier(gate, status, reason) if gate in set(GateId) else None
    said = f"same as gate {first.number}" if first else reason or payload.get("summary") or ""
    return f"{status_word(status)}: {reason_line(str(said), 240)}"


def _loose(payload: Payload) -> str:
    said = "accepts" if payload.get("accepted") else "rejects"
    trials = payload.get("trials")
    return f"{said} after {plural(trials, 'trial')}" if isinstance(trials, int) else said


def _verdict(payload: Payload) -> str:
    failed = [_gate_name(gate) for gate in payload.get("failed_gates") or ()]
    tail = f"; failed: {', '.join(failed)}" if failed else ""
    illusion = ", an illusion" if payload.get("illusion") else ""
    return f"{payload.get('outcome', '')}{illusion}{tail}"


def _gate_name(gate: object) -> str:
    found = next((page for page in GATES if page.id == gate), None)
    return f"{found.number} {found.short}" if found else str(gate)


def _queued(payload: Payload) -> str:
    queue = payload.get("queue")
    return f"waits for a node of queue {queue}" if queue else "waits for a node"


def _requeued(payload: Payload) -> str:
    left = payload.get("attempts_left")
    tail = f"; {plural(left, 'attempt')} left" if isinstance(left, int) else ""
    return f"queued again: {payload.get('reason', '')}{tail}"


def _measured(payload: Payload) -> str:
    latency = payload.get("latency_ms")
    figure = f"{latency:.4g} ms" if isinstance(latency, int | float) else ""
    return f"{payload.get('subject', '')}, {payload.get('workload', '')}: {figure}"


def _deep(payload: Payload) -> str:
    counted = payload.get("count")
    tail = f", {counted} reported" if isinstance(counted, int) and counted else ""
    return f"{payload.get('tool', '')}: {payload.get('status', '')}{tail}"


WORDS: Final[Mapping[str, tuple[str, Callable[[Payload], str]]]] = {
    "queued": ("queue", _queued),
    "leased": ("lease", lambda p: f"leased to node {p.get('node')}, attempt {p.get('attempt')}"),
    "started": ("start", lambda _: "the verifier began"),
    "loose": ("loose test", _loose),
    "gate": ("gate", lambda _: ""),
    "measurement": ("time", _measured),
    "deep": ("deep mode", _deep),
    "verdict": ("verdict", _verdict),
    "attempt_lost": (
        "lost",
        lambda p: f"attempt {p.get('attempt')} on {p.get('node')}: {p.get('reason')}",
    ),
    "requeued": ("queue", _requeued),
    "errored": ("error", lambda p: str(p.get("message", ""))),
    "cancel_requested": (
        "cancel",
        lambda p: f"asked for by {p['by']}" if p.get("by") else "asked for",
    ),
    "cancelled": ("cancel", lambda _: "cancelled; no verdict"),
    "finished": ("end", lambda p: f"finished: {p.get('outcome', '')}"),
}


def log_text(events: Sequence[EventLike]) -> str:
    """What was printed, as one text without terminal codes."""
    parts = [str(event.payload.get("text", "")) for event in events]
    return strip_control("".join(part if part.endswith("\n") else f"{part}\n" for part in parts))
