"""The layout of var/: everything that ``make run`` keeps between two starts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelhub.launch.errors import LaunchError
from kernelhub.launch.files import private_folder

REPO: Final = Path(__file__).resolve().parents[2]
LOG_LIMIT_NBYTES: Final = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Var:
    """Paths below the folder that KERNELHUB_VAR names."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def secret_key(self) -> Path:
        return self.root / "secret-key"

    @property
    def cli_token(self) -> Path:
        return self.root / "cli-token"

    @property
    def services(self) -> Path:
        """Addresses of the running services, for ``manage.py`` in another shell."""
        return self.root / "services.env"

    def node_token(self, node: str) -> Path:
        return self.root / "nodes" / node / "token"

    def node_home(self, node: str) -> Path:
        return self.root / "nodes" / node

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def var_open(root: Path) -> Var:
    """Creates the folders. Raises LaunchError when the place cannot be written to.

    var/ itself lets other users pass, as PostgreSQL's user must; what lies in it is private.
    """
    var = Var(root)
    try:
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        private_folder(var.logs)
        private_folder(root / "nodes")
        probe = root / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise LaunchError(
            f"Cannot write to {root} ({error.strerror}): make it writable, or name another folder "
            "with KERNELHUB_VAR."
        ) from error
    return var


@contextmanager
def var_held(root: Path) -> Iterator[Var]:
    """The folder, for one launch at a time. LaunchError when another one holds it."""
    var = var_open(root)
    with (root / "lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LaunchError(
                f"kernelhub already runs on {root}: use that one, stop it first, or name another "
                "folder with KERNELHUB_VAR (and another port with KERNELHUB_PORT)."
            ) from error
        yield var


def log_bound(path: Path, *, limit_nbytes: int = LOG_LIMIT_NBYTES) -> None:
    """Keeps one earlier piece of a log that has grown past the limit, and starts over.

    The writer appends through its own descriptor, so the file is emptied and not replaced.
    """
    if not path.exists() or path.stat().st_size <= limit_nbytes:
        return
    with path.open("rb+") as log:
        log.seek(-limit_nbytes, os.SEEK_END)
        path.with_suffix(".log.1").write_bytes(log.read(limit_nbytes))
        log.truncate(0)
