"""The events of one attempt on their way to the hub: in order, in small batches, bounded."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from gpu_runner.hub import Hub, HubRefusedError, HubUnreachableError, LeaseLostError
from gpu_runner.protocol import EVENTS_PER_BATCH, LOG_CHARACTERS, EventLine, LeasedRun

log = logging.getLogger(__name__)

EVERY_S: Final = 0.15
RETRY_S: Final = 1.0
BATCH_NBYTES: Final = 1 << 20
LOG_BUDGET_CHARACTERS: Final = 200_000
LOG_LINE_COST_CHARACTERS: Final = 100
"""What even the shortest line is charged, which bounds their number as well."""
PASSED_ON: Final = frozenset(
    {"started", "log", "loose", "gate_started", "gate", "measurement", "deep"}
)
CUT: Final = " [cut here]"


class EventFeed:
    """Numbers events from 0 and posts them; the hub's ``received`` says from where to go on.

    While the hub does not answer, events wait here. Raises LeaseLostError as soon as the hub says
    that the attempt holds the run no more, and HubRefusedError where it cannot read an event.
    """

    def __init__(self, hub: Hub, leased: LeasedRun) -> None:
        self.cancelled = False
        self._hub = hub
        self._leased = leased
        self._waiting: list[EventLine] = []
        self._received = 0
        self._next_post = 0.0
        self._log_left = LOG_BUDGET_CHARACTERS

    @property
    def waiting(self) -> bool:
        return bool(self._waiting) and not self.cancelled

    def add(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Takes one event; log lines are cut, and dropped once the run's budget is spent."""
        if kind not in PASSED_ON:
            log.warning("run %s: event of unknown kind %r", self._leased.run, kind)
        elif kind != "log":
            self._waiting.append(EventLine(kind, payload))
        elif self._log_left > 0:
            self._waiting.append(self._log_line(payload))

    def _log_line(self, payload: Mapping[str, Any]) -> EventLine:
        text = str(payload.get("text", ""))
        keep = min(LOG_CHARACTERS - len(CUT), self._log_left)
        self._log_left -= max(len(text), LOG_LINE_COST_CHARACTERS)
        shown = text if len(text) <= keep else text[:keep] + CUT
        return EventLine("log", {"source": str(payload.get("source", "")), "text": shown})

    def flush_if_due(self) -> None:
        if self._waiting and time.monotonic() >= self._next_post:
            self._post()

    def flush(self) -> None:
        """Posts everything; keeps what an unreachable hub did not take."""
        while self.waiting:
            if not self._post():
                return

    def _post(self) -> bool:
        """One batch; False when the hub did not answer or takes no more."""
        batch = self._batch()
        try:
            receipt = self._hub.events(self._leased, self._received, batch)
        except HubUnreachableError as error:
            log.warning("events wait: %s", error)
            self._next_post = time.monotonic() + RETRY_S
            return False
        except LeaseLostError:
            raise
        except HubRefusedError as error:
            raise HubRefusedError(f"the hub cannot take an event: {error}") from error
        del self._waiting[: max(0, receipt.received - self._received)]
        self._received = receipt.received
        self.cancelled = receipt.cancelled
        self._next_post = time.monotonic() + EVERY_S
        return True

    def _batch(self) -> tuple[EventLine, ...]:
        """As many waiting events as fit, at least one."""
        nbytes = 0
        for index, line in enumerate(self._waiting[:EVENTS_PER_BATCH]):
            nbytes += len(json.dumps(line.payload))
            if index and nbytes > BATCH_NBYTES:
                return tuple(self._waiting[:index])
        return tuple(self._waiting[:EVENTS_PER_BATCH])
