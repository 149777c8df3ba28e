"""What can happen to a run: one frozen dataclass a kind, and their publication after commit.

A stored event is the record. What is published is only a hint ("this run now has events up to
N"): whoever missed it asks for the events after the last number that he saw.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.dispatch import Signal

from verifier import records

log = logging.getLogger(__name__)

LOG_CHARACTERS: Final = 8_000
"""Longest text of one log event; what a kernel prints is hostile and unbounded."""


class EventKind(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    STARTED = "started"
    LOG = "log"
    LOOSE = "loose"
    GATE_STARTED = "gate_started"
    GATE = "gate"
    MEASUREMENT = "measurement"
    DEEP = "deep"
    VERDICT = "verdict"
    ATTEMPT_LOST = "attempt_lost"
    REQUEUED = "requeued"
    ERRORED = "errored"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class EventError(ValueError):
    """A posted event is of no kind that a node may post, or does not fit its kind."""


@dataclass(frozen=True, slots=True)
class Queued:
    kind: ClassVar = EventKind.QUEUED
    queue: str


@dataclass(frozen=True, slots=True)
class Leased:
    kind: ClassVar = EventKind.LEASED
    node: str
    attempt: int
    lease_s: int


@dataclass(frozen=True, slots=True)
class Started:
    """The verifier began: which task and kernel, on which device, in its own words."""

    kind: ClassVar = EventKind.STARTED
    task: Any
    kernel: Any
    device: Any


@dataclass(frozen=True, slots=True)
class Log:
    kind: ClassVar = EventKind.LOG
    source: str
    text: str

    def __post_init__(self) -> None:
        if len(self.text) > LOG_CHARACTERS:
            raise EventError(f"log text has {len(self.text)} characters, at most {LOG_CHARACTERS}")


@dataclass(frozen=True, slots=True)
class Loose:
    kind: ClassVar = EventKind.LOOSE
    result: records.LooseResult


@dataclass(frozen=True, slots=True)
class GateStarted:
    kind: ClassVar = EventKind.GATE_STARTED
    gate: records.GateId


@dataclass(frozen=True, slots=True)
class Gate:
    kind: ClassVar = EventKind.GATE
    result: records.GateResult


@dataclass(frozen=True, slots=True)
class Measured:
    kind: ClassVar = EventKind.MEASUREMENT
    result: records.Measurement


@dataclass(frozen=True, slots=True)
class LookedInto:
    kind: ClassVar = EventKind.DEEP
    result: records.DeepResult


@dataclass(frozen=True, slots=True)
class VerdictReached:
    kind: ClassVar = EventKind.VERDICT
    outcome: str
    illusion: bool
    hard: bool
    loose_accepted: bool | None
    failed_gates: tuple[str, ...]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """Our machinery lost this attempt; the kernel has no part in it."""

    kind: ClassVar = EventKind.ATTEMPT_LOST
    node: str
    attempt: int
    error_kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Requeued:
    kind: ClassVar = EventKind.REQUEUED
    reason: str
    attempts_left: int


@dataclass(frozen=True, slots=True)
class Errored:
    kind: ClassVar = EventKind.ERRORED
    error_kind: str
    message: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    kind: ClassVar = EventKind.CANCEL_REQUESTED
    by: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    kind: ClassVar = EventKind.CANCELLED


@dataclass(frozen=True, slots=True)
class Finished:
    kind: ClassVar = EventKind.FINISHED
    outcome: str


RunEvent = (
    Queued
    | Leased
    | Started
    | Log
    | Loose
    | GateStarted
    | Gate
    | Measured
    | LookedInto
    | VerdictReached
    | AttemptLost
    | Requeued
    | Errored
    | CancelRequested
    | Cancelled
    | Finished
)
Progress = Started | Log | Loose | GateStarted | Gate | Measured | LookedInto


def payload(event: RunEvent) -> dict[str, Any]:
    """The event as stored JSON; events that carry a record are stored as that record."""
    if isinstance(event, Loose | Gate | Measured | LookedInto):
        return records.to_json(event.result)
    return {one.name: records.to_json(getattr(event, one.name)) for one in fields(event)}


def _started(document: Mapping[str, Any]) -> Started:
    return Started(*(document.get(name) for name in ("task", "kernel", "device")))


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Progress]]] = {
    EventKind.STARTED: _started,
    EventKind.LOG: lambda document: records.from_json(Log, document),
    EventKind.LOOSE: lambda document: Loose(records.from_json(records.LooseResult, document)),
    EventKind.GATE_STARTED: lambda document: records.from_json(GateStarted, document),
    EventKind.GATE: lambda document: Gate(records.from_json(records.GateResult, document)),
    EventKind.MEASUREMENT: lambda document: Measured(
        records.from_json(records.Measurement, document)
    ),
    EventKind.DEEP: lambda document: LookedInto(records.from_json(records.DeepResult, document)),
}


def read_progress(kind: str, document: Mapping[str, Any]) -> Progress:
    """A node's line as a typed event; EventError says what does not fit."""
    reader = _READERS.get(kind)
    if reader is None:
        raise EventError(f"a node may not post events of kind {kind!r}")
    try:
        return reader(document)
    except records.RecordError as error:
        raise EventError(f"{kind}: {error}") from error


@dataclass(frozen=True, slots=True)
class RunChange:
    """A committed change: which run now has events up to ``seq``, and of which kinds."""

    run_id: UUID
    campaign_id: UUID | None
    seq: int
    kinds: frozenset[EventKind]
    queue: str


run_changed = Signal()
"""Sent after commit with ``change: RunChange``. Receivers dispatch jobs; they never write runs."""


def publish(change: RunChange) -> None:
    """Tells this process's receivers and the open pages; no failure reaches the caller."""
    for receiver, error in run_changed.send_robust(sender=None, change=change):
        if isinstance(error, Exception):
            log.warning("receiver %r of run %s failed: %s", receiver, change.run_id, error)
    try:
        async_to_sync(_broadcast)(change)
    except Exception as error:  # noqa: BLE001 - any broker failure; the stored event is the record
        log.warning("run %s event %s not published: %s", change.run_id, change.seq, error)


async def _broadcast(change: RunChange) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    message = {"type": "run.changed", "run": str(change.run_id), "seq": change.seq}
    for group in _groups(change):
        await layer.group_send(group, message)


def _groups(change: RunChange) -> list[str]:
    campaign = [f"campaign.{change.campaign_id}"] if change.campaign_id else []
    return [f"run.{change.run_id}", *campaign, "overview"]
