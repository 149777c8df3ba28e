"""What the hub does again and again: reap expired leases, notice silent nodes, send messages.

A thread of the hub worker rather than Celery's beat: it needs neither a process of its own nor a
working broker, and several of them do no harm, because every change is a conditional UPDATE.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Any, Final

from celery import signals
from django.db import close_old_connections

from gpu_runner.dispatch import dispatch_waiting
from kernelhub.core import services

log = logging.getLogger(__name__)

EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Tick:
    """What one round did."""

    reaped: int
    silent: int
    dispatched: int


def tick() -> Tick:
    """One round; safe at any time and from several processes."""
    reaped = len(services.run_requeue_expired())
    return Tick(reaped, services.nodes_mark_silent(), dispatch_waiting())


class Clock(threading.Thread):
    """Ticks until ``end``; a failing database is reported and tried again."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        super().__init__(daemon=True, name="hub-clock")
        self._every_s = every_s
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            close_old_connections()
            try:
                tick()
            except Exception:
                log.exception("the hub's clock stumbled")
        close_old_connections()

    def end(self) -> None:
        self._ended.set()


def clock_follows_worker() -> None:
    """Starts a clock with each Celery worker of this application, broker or no broker."""
    clocks: list[Clock] = []

    def start(**_: Any) -> None:
        clocks.append(Clock())
        clocks[-1].start()

    def end(**_: Any) -> None:
        for clock in clocks:
            clock.end()

    signals.worker_init.connect(start, weak=False)
    signals.worker_shutting_down.connect(end, weak=False)
