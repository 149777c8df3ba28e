"""The user that servers run as when we are root, since PostgreSQL refuses to be root."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kernelhub.launch.errors import LaunchError

EXISTING: Final = "postgres"
CREATED: Final = "kernelhub"


@dataclass(frozen=True, slots=True)
class SystemUser:
    """A user by number; the numbers are what files and processes carry."""

    name: str
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)

    def identity(self) -> dict[str, Any]:
        """Arguments for ``subprocess`` that start a command as this user."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, flag: str, path: Path) -> bool:
        """Whether this user passes ``test <flag> <path>``, parents' permissions included."""
        command = ["test", flag, str(path)]
        return subprocess.run(command, cwd="/", **self.identity()).returncode == 0

    def can_run(self, program: Path) -> bool:
        """Whether this user can execute the program, with all the libraries that it needs."""
        command = [str(program), "--version"]
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, **self.identity())
        except OSError:
            return False
        return done.returncode == 0


def current_user() -> SystemUser:
    uid, gid = os.geteuid(), os.getegid()
    try:
        return SystemUser(name=pwd.getpwuid(uid).pw_name, uid=uid, gid=gid)
    except KeyError as error:
        raise LaunchError(
            f"User {uid} has no line in /etc/passwd, and PostgreSQL needs one: "
            "run as a named user, or set DATABASE_URL."
        ) from error


def database_user() -> SystemUser:
    """Ourselves, or as root the system's own ``postgres``, or a ``kernelhub`` made for this."""
    if os.geteuid() != 0:
        return current_user()
    return _lookup(EXISTING) or _lookup(CREATED) or _create(CREATED)


def _lookup(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _create(name: str) -> SystemUser:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent"]
    try:
        subprocess.run([*command, "--shell=/usr/sbin/nologin", name], check=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LaunchError(
            "PostgreSQL refuses to run as root, and no system user could be created for it: "
            "run as an ordinary user, or set DATABASE_URL."
        ) from error
    user = _lookup(name)
    if user is None:
        raise LaunchError(f"The system user {name} was created but cannot be found.")
    return user
