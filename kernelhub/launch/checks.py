"""What can be known to go wrong before anything is started; each problem is one line of advice."""

from __future__ import annotations

import errno
import shutil
import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
import redis

from kernelhub.launch.errors import LaunchError

NEEDED_MB: Final = 300
CONNECT_TIMEOUT_S: Final = 5
DEFAULT_PORTS: Final = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}


def check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise LaunchError(_port_advice(port, error)) from error


def _port_advice(port: int, error: OSError) -> str:
    other = f"KERNELHUB_PORT={port + 1 if port < 65535 else 8000} make run"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use: stop the program that holds it, or use another: {other}"
    return f"Port {port} cannot be used ({error.strerror}): use another: {other}"


def check_disk(folder: Path) -> None:
    free_mb = shutil.disk_usage(folder).free // 2**20
    if free_mb < NEEDED_MB:
        raise LaunchError(
            f"The disk of {folder} has {free_mb} MB left, and {NEEDED_MB} MB are needed: free "
            "some, or name a folder on another disk with KERNELHUB_VAR."
        )


def check_database(url: str) -> None:
    """Signs in once. The message is libpq's own reason, which holds no password."""
    try:
        psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except psycopg.Error as error:
        reason = " / ".join(str(error).strip().splitlines())
        raise LaunchError(
            f"The database that DATABASE_URL names does not let us in ({reason}): correct "
            "DATABASE_URL, or unset it to have a PostgreSQL started here."
        ) from error


def check_broker(url: str, *, name: str = "BROKER_URL") -> None:
    """Signs in to a Redis; of another broker it only sees whether somebody listens."""
    try:
        if urlsplit(url).scheme in {"redis", "rediss"}:
            _ping_redis(url)
        else:
            _connect(url)
    except (OSError, ValueError, redis.RedisError) as error:
        raise LaunchError(
            f"The broker that {name} names does not answer ({error}): start it, correct {name}, "
            f"or unset it to have a Redis started here."
        ) from error


def _ping_redis(url: str) -> None:
    timeouts = {"socket_connect_timeout": CONNECT_TIMEOUT_S, "socket_timeout": CONNECT_TIMEOUT_S}
    with redis.Redis.from_url(url, **timeouts) as client:
        client.ping()


def _connect(url: str) -> None:
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or DEFAULT_PORTS[parts.scheme])
    socket.create_connection(address, timeout=CONNECT_TIMEOUT_S).close()
