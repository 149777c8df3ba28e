"""Whether this node takes runs, or stays out of service because its device cannot be trusted.

Strikes are examinations that found the device sick, verifiers that did not start, and runs in
which the device failed; a judged run wipes them out. Enough of them take the node out of service:
it tells the hub why, takes no lease, and examines its device now and then, each time after a longer
rest. It returns when an examination passes and the hub agrees, and then on probation.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpu_runner.hub import Hub
from gpu_runner.protocol import HealthNotice
from verifier.records import HealthReport

log = logging.getLogger(__name__)

STRIKES_MAX: Final = 3
HEAVY: Final = 2
"""A device that failed in a run, although it was healthy at the start, costs runs their attempts:
twice is enough."""
REST_S: Final = 30.0
REST_MAX_S: Final = 600.0
TELL_EVERY_S: Final = 15.0
REASON_CHARACTERS: Final = 1_000


class Standing:
    """Shared by the workers of one agent; safe from several threads."""

    def __init__(self, hub: Hub, stop: threading.Event, *, rest_s: float = REST_S) -> None:
        self.stop = stop
        self.reason = ""
        """Why the node is out of service; '' while it is in service."""
        self._hub = hub
        self._rest_s = rest_s
        self._lock = threading.RLock()
        self._turn = threading.Lock()
        self._examining = threading.Lock()
        self._strikes = 0
        self._proven = False
        self._rests = 0
        self._examine_at = 0.0
        self._tell_at = 0.0
        self._report: HealthReport | None = None

    @property
    def in_service(self) -> bool:
        return not self.reason

    @property
    def strikes(self) -> int:
        return self._strikes

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """While there is doubt, verifiers start one at a time: else one sick device would count as
        often as there are workers."""
        if self._proven and not self._strikes:
            yield
            return
        with self._turn:
            yield
            self._proven = True

    def judged(self) -> None:
        """A run got its verdict: the device works."""
        with self._lock:
            self._strikes = self._rests = 0

    def strike(
        self, reason: str, report: HealthReport | None = None, *, heavy: bool = False
    ) -> None:
        """The device, or the verifier on it, failed."""
        with self._lock:
            self._strikes += HEAVY if heavy else 1
            self._proven = False
            if not self.in_service:
                self._out(reason, report)
            elif self._strikes >= STRIKES_MAX:
                log.error("out of service: %s", reason)
                self._out(reason, report)

    def _out(self, reason: str, report: HealthReport | None) -> None:
        self.reason = reason[:REASON_CHARACTERS] or "its device is sick"
        self._report = report
        self._tell_at = 0.0
        self._examine_at = time.monotonic() + min(self._rest_s * 2**self._rests, REST_MAX_S)
        self._rests += 1

    def out_already(self) -> None:
        """The hub holds the node out of service, although its device was found healthy just now:
        an earlier agent took it out. Nothing to tell; ask to return at once."""
        with self._lock:
            self.reason = self.reason or "an earlier agent of this node took it out of service"
            self._examine_at = 0.0
            self._tell_at = time.monotonic() + TELL_EVERY_S

    def tell(self) -> None:
        """Tells the hub, now and then, that the node is out of service and why; learns whether an
        operator wants it examined. Raises the hub's errors."""
        with self._lock:
            if self.in_service or time.monotonic() < self._tell_at:
                return
            self._tell_at = time.monotonic() + TELL_EVERY_S
            notice = HealthNotice(False, self.reason, self._report)
        answer = self._hub.health(notice)
        with self._lock:
            self._report = None
            if answer.retest:
                self._examine_at = 0.0

    @contextmanager
    def examination(self) -> Iterator[bool]:
        """True for the one worker that is to examine the device now."""
        if time.monotonic() < self._examine_at or not self._examining.acquire(blocking=False):
            yield False
            return
        try:
            yield not self.in_service
        finally:
            self._examining.release()

    def return_ask(self, report: HealthReport | None) -> None:
        """The device was found healthy: back into service, on probation, if the hub agrees. Raises
        the hub's errors."""
        answer = self._hub.health(HealthNotice(True, "", report))
        with self._lock:
            self._examine_at = time.monotonic() + min(self._rest_s * 2**self._rests, REST_MAX_S)
            self._rests += 1
            if answer.in_service:
                log.warning("back in service")
                self.reason = ""
                self._strikes = STRIKES_MAX - 1
