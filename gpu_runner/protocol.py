"""What hub and node say to each other over HTTP: frozen dataclasses, JSON by verifier.records.

No Django and no torch: the node agent and the hub's node API both import this.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from verifier.records import Environment, HealthReport

JOB_NAME: Final = "gpu_runner.take"
"""The Celery job that wakes a node; its only argument is the id of the run that waits."""

EVENTS_PER_BATCH: Final = 200
LOG_CHARACTERS: Final = 8_000
CPU_QUEUE: Final = "cpu-interpret"


class FaultKind(StrEnum):
    """Whose fault an attempt without a verdict is; never the kernel's."""

    INFRASTRUCTURE = "infrastructure"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class Registration:
    """Which queue an agent serves and what its verifier says of the device. ``afresh``: the agent
    has just started, so that it holds no run of those that the hub has leased to its node."""

    queue: str
    environment: Environment
    afresh: bool = True


@dataclass(frozen=True, slots=True)
class Welcome:
    node: str
    lease_s: int
    heartbeat_s: int
    in_service: bool = True


@dataclass(frozen=True, slots=True)
class HealthNotice:
    """What the node found when it examined its device. ``report`` is the last examination; it is
    left out where a notice only repeats an earlier one."""

    well: bool
    reason: str = ""
    report: HealthReport | None = None

    def __post_init__(self) -> None:
        if self.well is bool(self.reason):
            raise ValueError("a node that is not well says why, and only that one")


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the hub gives the node runs; ``retest``: an operator wants the device examined."""

    in_service: bool
    retest: bool = False
    held: bool = False
    """It stays out until an operator asks for it, however healthy it is found."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """``run`` asks for that very run; without it the hub gives whichever is next."""

    run: str | None = None


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """All that judging one run takes, but for the task folder, which a node keeps by digest."""

    run: str
    attempt: int
    lease_s: int
    seed: int
    task: str
    digest: str
    sha256: str
    entry: str
    source: str


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The two files of a task folder."""

    contract: str
    reference: str

    @property
    def digest(self) -> str:
        """The verifier's formula: canonical contract, NUL, reference."""
        canonical = json.dumps(json.loads(self.contract), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{canonical}\0{self.reference}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    attempt: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many events of the attempt the hub has, and whether the run was cancelled."""

    received: int
    cancelled: bool


@dataclass(frozen=True, slots=True)
class EventLine:
    kind: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events of an attempt, the first of which is its number ``first`` (from 0)."""

    attempt: int
    first: int
    events: tuple[EventLine, ...]

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(f"events are numbered from 0, not from {self.first}")


@dataclass(frozen=True, slots=True)
class VerdictReport:
    attempt: int
    verdict: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FaultReport:
    attempt: int
    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class Release:
    attempt: int
    reason: str = field(default="the node stops")
