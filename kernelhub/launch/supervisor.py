"""One launch from the first check to the last stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from kernelhub.launch.addresses import Addresses
from kernelhub.launch.checks import check_broker, check_database, check_disk, check_port
from kernelhub.launch.crew import Crew
from kernelhub.launch.devices import LocalDevice
from kernelhub.launch.errors import LaunchError
from kernelhub.launch.files import read_or_create_secret
from kernelhub.launch.keeper import FORWARDED, heeded
from kernelhub.launch.postgres import (
    cluster_end_leftover,
    cluster_prepare,
    cluster_ready,
    cluster_service,
)
from kernelhub.launch.process import log_tail
from kernelhub.launch.redis_server import redis_prepare, redis_ready, redis_service
from kernelhub.launch.services import agent_service, web_ready, web_service, worker_service
from kernelhub.launch.terminal import complain, say
from kernelhub.launch.var import REPO, Var, var_held
from kernelhub.programs import BIN
from kernelhub.settings.env import BROKER_SCHEMES, CHANNEL_SCHEMES, POSTGRES_SCHEMES, env_url

START_TIMEOUT_S: Final = 90.0
TICK_S: Final = 0.1
DATABASE_TRIES: Final = 5


class Stopped(Exception):
    """Raised out of any wait once a signal asked this launch to end."""


@dataclass(slots=True)
class Stop:
    """How often somebody asked us to stop: once is a request, twice is impatience."""

    asked: int = 0

    def listen(self) -> None:
        for number in heeded(FORWARDED):
            signal.signal(number, self._note)

    def patient(self) -> bool:
        return self.asked < 2

    def check(self) -> None:
        if self.asked:
            raise Stopped

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked += 1


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line chose."""

    port: int
    demo: bool
    devices: tuple[LocalDevice, ...]


def supervise(options: Options, var_root: Path) -> int:
    """Serves until asked to stop; 0 after that, 1 when the launch cannot go on."""
    stop = Stop()
    stop.listen()
    try:
        with var_held(var_root) as var, _crew_of(var, stop) as crew:
            _serve(options, var, crew, stop)
    except Stopped:
        say("stopped; the data stays in var/")
    except (LaunchError, ImproperlyConfigured) as problem:
        complain(str(problem))
        return 1
    return 0


@contextmanager
def _crew_of(var: Var, stop: Stop) -> Iterator[Crew]:
    """Processes that are all gone when the block is left, however it is left."""
    crew = Crew(say, stop.check)
    try:
        yield crew
    finally:
        crew.stop(patient=stop.patient)
        var.services.unlink(missing_ok=True)


def _serve(options: Options, var: Var, crew: Crew, stop: Stop) -> None:
    check_port(options.port)
    check_disk(var.root)
    addresses = _start_stores(options, var, crew)
    addresses.write()
    stop.check()
    prepared = _prepare(addresses, options.devices, stop)
    _tell_password(prepared)
    _start_hub(addresses, options.devices, crew)
    say(f"open {addresses.hub_url}")
    if options.demo:
        _show_demo(addresses, crew, stop)
    say(f"serving {addresses.hub_url} (Ctrl-C stops everything)")
    while True:
        _pause(crew, stop)


def _start_stores(options: Options, var: Var, crew: Crew) -> Addresses:
    """The database and the broker: those that the environment names, else our own."""
    broker = _broker(var, crew)
    return Addresses(
        var=var,
        port=options.port,
        database_url=_database(var, crew),
        broker_url=broker,
        channel_url=_channel_url(broker),
        secret_key=os.environ.get("KERNELHUB_SECRET_KEY")
        or read_or_create_secret(var.secret_key, nbytes=32),
    )


def _database(var: Var, crew: Crew) -> str:
    if os.environ.get("DATABASE_URL"):
        url = env_url("DATABASE_URL", schemes=POSTGRES_SCHEMES)
        check_database(url)
        return url
    cluster = cluster_prepare(var.postgres)
    cluster_end_leftover(cluster)
    service = cluster_service(cluster, var.log("postgres"))
    # After a power cut or a kill, processes of the earlier server may take a moment to end.
    crew.start_and_wait(
        service, lambda: cluster_ready(cluster), timeout_s=START_TIMEOUT_S, tries=DATABASE_TRIES
    )
    return cluster.url


def _broker(var: Var, crew: Crew) -> str:
    if os.environ.get("BROKER_URL"):
        url = env_url("BROKER_URL", schemes=BROKER_SCHEMES)
        check_broker(url)
        return url
    server = redis_prepare(var.redis)
    service = redis_service(server, var.log("redis"))
    crew.start_and_wait(service, lambda: redis_ready(server), timeout_s=START_TIMEOUT_S)
    return server.url


def _channel_url(broker: str) -> str:
    url = env_url("CHANNEL_URL", schemes=CHANNEL_SCHEMES, default=broker)
    if os.environ.get("CHANNEL_URL"):
        check_broker(url, name="CHANNEL_URL")
    return url


def _prepare(addresses: Addresses, devices: Sequence[LocalDevice], stop: Stop) -> dict[str, Any]:
    """Runs ``prepare`` and reads its answer. LaunchError with the log's last line otherwise."""
    log = addresses.var.log("prepare")
    command = [sys.executable, "-m", "kernelhub.launch.prepare", *[one.node for one in devices]]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command,
            cwd=REPO,
            env=addresses.hub_env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            text=True,
        ) as process,
    ):
        while process.poll() is None:
            if stop.asked:
                process.kill()
                raise Stopped
            time.sleep(TICK_S / 4)
        answer = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise LaunchError(f"preparing the database failed: {log_tail(log, lines=1)} (see {log})")
    return dict(json.loads(answer))


def _start_hub(addresses: Addresses, devices: Sequence[LocalDevice], crew: Crew) -> None:
    web = crew.start(web_service(addresses))
    crew.start(worker_service(addresses))
    for device in devices:
        token = addresses.var.node_token(device.node).read_text(encoding="utf-8").strip()
        crew.start(agent_service(addresses, device, token))
    crew.wait(web, lambda: web_ready(addresses), timeout_s=START_TIMEOUT_S)


def _tell_password(prepared: dict[str, Any]) -> None:
    """At once and once: a launch that fails later on must not take the password with it."""
    name, password = prepared["admin"], prepared["password"]
    if password:
        say(f"sign in as {name} with the password {password} (shown only now, stored nowhere)")
    else:
        say(f"sign in as {name}; while this runs, a new password is set with")
        say(f"  {BIN}/python manage.py changepassword {name}")


def _show_demo(addresses: Addresses, crew: Crew, stop: Stop) -> None:
    """Shows the demo campaign's progress and its table, then goes on serving."""
    log = addresses.var.log("demo")
    command = [sys.executable, "-m", "kernelhub.launch.demo"]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=REPO,
            env=addresses.hub_env(),
            stdin=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        while process.poll() is None:
            _pause(crew, stop)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        say(f"the demo campaign cannot be shown: {log_tail(log, lines=1)} (see {log})")


def _pause(crew: Crew, stop: Stop) -> None:
    stop.check()
    crew.tick()
    time.sleep(TICK_S)
