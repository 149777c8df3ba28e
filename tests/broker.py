"""A private Redis that a test may take away and bring back at the same address."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelhub.launch.process import spawn, stop, wait_until
from kernelhub.launch.redis_server import redis_prepare, redis_ready, redis_service

START_S = 30.0


class Broker:
    """Keeps its port and password, and forgets everything else, as a restarted Redis does."""

    def __init__(self, folder: Path) -> None:
        self.server = redis_prepare(folder / "redis")
        self.service = redis_service(self.server, folder / "redis.log")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        self.process = spawn(self.service)
        ready = wait_until(
            lambda: redis_ready(self.server), process=self.process, timeout_s=START_S
        )
        assert ready, self.service.log.read_text()

    def stop(self) -> None:
        if self.process is not None:
            stop(self.service, self.process)
            self.process = None


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
