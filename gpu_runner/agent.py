"""The node agent: leases runs, has them judged by its verifiers, tells the hub what comes of them.

One agent serves one device with one token; its workers judge side by side, each with a verifier of
its own and one lease. What they share: the connection to the hub, what the hub knows of the
device, and whether the node is in service.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpu_runner.config import AgentConfig
from gpu_runner.hub import Hub, HubRefusedError, HubUnreachableError
from gpu_runner.registry import Registry
from gpu_runner.scratch import Scratch
from gpu_runner.standing import Standing
from gpu_runner.worker import GOODBYE_S, Worker

log = logging.getLogger(__name__)

TURN_S: Final = 0.5


class Agent:
    """One device's agent. ``serve`` runs until ``stop``; ``take`` judges one run, if one waits."""

    def __init__(self, config: AgentConfig, serves: str, hub: Hub | None = None) -> None:
        self.config = config
        self.queue = serves
        self._hub = hub or Hub(config.hub_url, config.token)
        self._stop = threading.Event()
        self.standing = Standing(self._hub, self._stop, rest_s=config.rest_s)
        self.registry = Registry(self._hub, serves, self.standing)
        scratch = Scratch(config.scratch)
        self.workers = tuple(
            Worker(config, self._hub, scratch, self.registry, self.standing)
            for _ in range(config.workers)
        )
        # The one used last comes first: further verifiers start only once the warm ones are busy.
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in reversed(self.workers):
            self._idle.put(worker)

    def stop(self) -> None:
        """Asks everything to end at once; safe in a signal handler."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def serve(self) -> None:
        """Polls the hub while idle, so that a dead broker or a lost message loses no run."""
        loops = [
            threading.Thread(target=self._loop, name=f"worker-{number}")
            for number in range(1, len(self.workers))
        ]
        for loop in loops:
            loop.start()
        try:
            self._loop()
            for loop in loops:
                loop.join()
        finally:
            self.stop()
            self._shut()

    def _loop(self) -> None:
        while not self.stopping:
            if not self.take():
                self._stop.wait(self.config.poll_s)

    def take(self) -> bool:
        """Judges one run with the first worker that is free; False when there was nothing to do."""
        with self._borrowed() as worker:
            return worker is not None and worker.take_safely()

    @contextmanager
    def _borrowed(self) -> Iterator[Worker | None]:
        """A worker for this thread alone; None when the agent stops."""
        worker = None
        while worker is None and not self.stopping:
            with contextlib.suppress(queue.Empty):
                worker = self._idle.get(timeout=TURN_S)
        try:
            yield worker
        finally:
            if worker is not None:
                self._idle.put(worker)

    def _shut(self) -> None:
        """Each worker ends what it is at by itself, since ``stop`` was asked for."""
        for _ in self.workers:
            self._idle.get().end()
        with contextlib.suppress(HubUnreachableError, HubRefusedError):
            self._hub.goodbye(timeout_s=GOODBYE_S)
        self._hub.close()
