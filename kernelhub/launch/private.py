"""Servers for as long as a ``with`` block: what the test suite runs against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.postgres import Cluster, cluster_prepare, cluster_ready, cluster_service
from kernelhub.launch.process import Service, log_tail, spawn, stop, wait_until
from kernelhub.launch.redis_server import Redis, redis_prepare, redis_ready, redis_service

START_TIMEOUT_S: Final = 60.0


@contextmanager
def private_postgres(folder: Path) -> Iterator[Cluster]:
    """A PostgreSQL whose data need not survive a power failure."""
    cluster = cluster_prepare(folder / "postgres", careless=True)
    service = cluster_service(cluster, folder / "postgres.log")
    with _running(service, lambda: cluster_ready(cluster)):
        yield cluster


@contextmanager
def private_redis(folder: Path) -> Iterator[Redis]:
    server = redis_prepare(folder / "redis")
    with _running(redis_service(server, folder / "redis.log"), lambda: redis_ready(server)):
        yield server


@contextmanager
def _running(service: Service, ready: Callable[[], bool]) -> Iterator[None]:
    process = spawn(service)
    try:
        if not wait_until(ready, process=process, timeout_s=START_TIMEOUT_S):
            raise LaunchError(f"{service.name} did not start: {log_tail(service.log)}")
        yield
    finally:
        stop(service, process)
