"""One device, several processes: judging is shared, timing is exclusive.

A readers-writer lock on two files that all processes of a machine know. Who judges and who times
pass the *turnstile*; who times keeps it while it waits and while it works, so that no newcomer
delays it for ever. Who judges looks up between two calls (``give_way``), so that a timing waits for
the calls under way and not for whole kernels. A third file is held for calls that need most of the
device's memory (``room``), of which one at a time can have it. The system releases all files when a
process ends, however it ends: nothing is left behind by ``kill -9``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from verifier.errors import InfrastructureError
from verifier.records import DeviceMode, Environment

POLL_S: Final = 0.005
"""Polled, not waited for: whoever waits must still hear that the run was cancelled."""
PATIENCE_S: Final = 600.0
_NO_FILE: Final = -1
_CLOSED: Final = -2
_PLACES: Final = ("/run/lock", "/tmp")  # noqa: S108 - shared by all users on purpose


class DeviceBusyError(InfrastructureError):
    """The device was not to be had in time: its holder hangs, and no kernel is to blame."""


class Held(StrEnum):
    """What this process does with the device."""

    NOTHING = "nothing"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


def _nothing() -> None:
    """Nobody asks to stop."""


class DeviceLock:
    """The lock of one device, for one thread of one process. ``shared`` may be nested in itself and
    in ``exclusive``; ``exclusive`` inside ``shared`` would wait for itself and is refused."""

    def __init__(
        self, turnstile: int, use: int, most: int = _NO_FILE, *, patience_s: float = PATIENCE_S
    ) -> None:
        self.held = Held.NOTHING
        self.waited_s = 0.0
        """All the time that went by waiting; it is nobody's working time."""
        self._turnstile = turnstile
        self._use = use
        self._most = most
        self._patience_s = patience_s

    @classmethod
    def of(cls, folder: Path, device: str, *, patience_s: float = PATIENCE_S) -> Self:
        """The lock that every process of this machine means by ``device``."""
        name = "kernelhub-" + re.sub(r"[^\w.-]", "-", device)
        files = (_shared_file(folder / f"{name}.{part}") for part in ("turn", "use", "room"))
        return cls(*files, patience_s=patience_s)

    @classmethod
    def alone(cls) -> Self:
        """For a device that is nobody else's: nothing to wait for."""
        return cls(_NO_FILE, _NO_FILE)

    def close(self) -> None:
        """Let go of everything. May be called twice."""
        for fd in (self._use, self._turnstile, self._most):
            if fd >= 0:
                os.close(fd)
        self._use = self._turnstile = self._most = _CLOSED
        self.held = Held.NOTHING

    @contextmanager
    def shared(self, check: Callable[[], None] = _nothing) -> Iterator[None]:
        """Use the device beside others. ``check`` may raise while it waits; DeviceBusyError."""
        if self.held is not Held.NOTHING:
            yield
            return
        self._enter(check)
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def exclusive(self, check: Callable[[], None] = _nothing) -> Iterator[None]:
        """Use the device alone. ``check`` may raise while it waits; DeviceBusyError."""
        if self.held is not Held.NOTHING:
            raise RuntimeError(f"the device is held already: {self.held}")
        self._acquire(self._turnstile, fcntl.LOCK_EX, check)
        try:
            self._acquire(self._use, fcntl.LOCK_EX, check)
            self.held = Held.EXCLUSIVE
            yield
        finally:
            self._leave()
            _release(self._turnstile)

    @contextmanager
    def room(self, check: Callable[[], None] = _nothing) -> Iterator[None]:
        """Beside others, be the only one that needs most of the memory. As ``shared`` otherwise."""
        self._acquire(self._most, fcntl.LOCK_EX, check)
        try:
            yield
        finally:
            _release(self._most)

    def give_way(self, check: Callable[[], None] = _nothing) -> None:
        """Between two calls: if somebody waits to time, step aside until it is done."""
        if self.held is not Held.SHARED or self._passes(self._turnstile, fcntl.LOCK_SH):
            return
        self._leave()
        self._enter(check)

    def _enter(self, check: Callable[[], None]) -> None:
        self._acquire(self._turnstile, fcntl.LOCK_SH, check)
        try:
            self._acquire(self._use, fcntl.LOCK_SH, check)
            self.held = Held.SHARED
        finally:
            _release(self._turnstile)

    def _leave(self) -> None:
        _release(self._use)
        self.held = Held.NOTHING

    def _passes(self, fd: int, kind: int) -> bool:
        """Whether the file is free for that kind of use; it is not kept."""
        if not _try(fd, kind):
            return False
        _release(fd)
        return True

    def _acquire(self, fd: int, kind: int, check: Callable[[], None]) -> None:
        began = time.monotonic()
        try:
            while not _try(fd, kind):
                check()
                if time.monotonic() - began > self._patience_s:
                    raise DeviceBusyError(
                        f"the device was not free within {self._patience_s:g} s: "
                        "another verifier of this machine holds it and does not go on"
                    )
                time.sleep(POLL_S)
        finally:
            self.waited_s += time.monotonic() - began


def _release(fd: int) -> None:
    if fd != _NO_FILE:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _try(fd: int, kind: int) -> bool:
    if fd == _NO_FILE:
        return True
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
            return False
        raise
    return True


def _shared_file(path: Path) -> int:
    """An open file that every user of the machine may lock, and none may follow elsewhere.

    Opened without O_CREAT where it exists: in a sticky folder the system forbids that for the file
    of another user.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(100):
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(fd, 0o644)  # whatever the umask says
            return fd
    raise InfrastructureError(f"{path} comes and goes: the device cannot be locked")


def lock_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where locks lie: KERNELHUB_VERIFIER_LOCKS, else the first folder in which every user may make
    files, which therefore is the same one for all of them."""
    if named := environ.get("KERNELHUB_VERIFIER_LOCKS", ""):
        return Path(named)
    for place in map(Path, _PLACES):
        with suppress(OSError):
            if place.stat().st_mode & (stat.S_ISVTX | stat.S_IWOTH) == stat.S_ISVTX | stat.S_IWOTH:
                return place
    raise InfrastructureError(
        f"none of {', '.join(_PLACES)} is open to all users, so processes cannot agree on who "
        "times; set KERNELHUB_VERIFIER_LOCKS to a folder that they share"
    )


def device_lock(environment: Environment) -> DeviceLock:
    """The lock of the device that a verifier runs on. Interpreter times say nothing about a device,
    so a processor is not kept free for them."""
    if environment.mode is not DeviceMode.CUDA:
        return DeviceLock.alone()
    return DeviceLock.of(lock_folder(), environment.device_uuid or environment.device_name)
