"""What a forked child does to itself before it runs hostile code.

Order matters: namespaces and mounts need capabilities, so they come first; then the child becomes
pid 1 (init) of its own pid namespace and forks the host, which takes on limits and filters.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from verifier.candidate import landlock, seccomp, syscalls

SCRATCH: Final = "/tmp"  # noqa: S108 - a private tmpfs; outer.py may name another place
SHM: Final = "/dev/shm"  # noqa: S108 - likewise


class Nesting(StrEnum):
    """How a candidate is parted from the forkserver and from other candidates."""

    ROOT = "root"
    """Own mount, pid and IPC namespaces, made with real capabilities; an unprivileged uid."""
    USER = "user"
    """The same inside a user namespace of its own."""
    NONE = "none"
    """Only a process of its own (where a whole bubblewrap, or nothing, stands around it)."""


@dataclass(frozen=True, slots=True)
class Cage:
    """Everything that the child needs to know to lock itself in. Travels as JSON."""

    nesting: Nesting
    uid: int | None
    scratch: str
    scratch_bytes: int
    cuda: bool
    readable: tuple[str, ...] = ("/",)
    filters: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "nesting": self.nesting.value,
            "uid": self.uid,
            "scratch": self.scratch,
            "scratch_bytes": self.scratch_bytes,
            "cuda": self.cuda,
            "readable": list(self.readable),
            "filters": self.filters,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Cage:
        values = dict(body)
        values["nesting"] = Nesting(values["nesting"])
        values["readable"] = tuple(values["readable"])
        return cls(**values)


def namespaces_enter(cage: Cage) -> None:
    """New namespaces and a private scratch. The next fork is pid 1. Raises OSError."""
    if cage.nesting is Nesting.NONE:
        return
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    if cage.nesting is Nesting.USER:
        _user_namespace(flags)
    else:
        syscalls.unshare(flags)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    _scratch_mount(cage)


def _user_namespace(flags: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    syscalls.unshare(flags | syscalls.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _scratch_mount(cage: Cage) -> None:
    owner = os.getuid() if cage.uid is None else cage.uid
    group = os.getgid() if cage.uid is None else cage.uid
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    options = f"size={cage.scratch_bytes},nr_inodes=65536,mode=0700,uid={owner},gid={group}"
    for target in (cage.scratch, SHM):
        syscalls.mount("tmpfs", target, "tmpfs", flags, options)


def init_settle(cage: Cage) -> None:
    """In the new pid 1: its own /proc where allowed, then the unprivileged uid."""
    if cage.nesting is not Nesting.NONE:
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
        # In a user namespace this fails where bubblewrap covers a part of /proc: then the outer
        # one stays in view, which shows process names but gives no access to them.
        with suppress(OSError):
            syscalls.mount("proc", "/proc", "proc", flags)
    else:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    if cage.uid is not None:
        os.setgroups([])
        os.setresgid(cage.uid, cage.uid, cage.uid)
        os.setresuid(cage.uid, cage.uid, cage.uid)
    syscalls.capabilities_drop()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def streams(log_fd: int) -> None:
    """stdin from nowhere, stdout and stderr into the log."""
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(null)
    if log_fd > 2:
        os.close(log_fd)


def limits_set(limits: Mapping[str, float], cage: Cage) -> None:
    """Resource limits of the host and of all that it starts, soft and hard alike."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_MEMLOCK: 64 << 10,
    }
    if cage.cuda:  # the driver reserves terabytes of addresses and locks pages
        del wanted[resource.RLIMIT_MEMLOCK]
    else:
        total, private = _address_space()
        wanted[resource.RLIMIT_AS] = total + limits["address_bytes"]
        wanted[resource.RLIMIT_DATA] = private + limits["memory_bytes"]
    for kind, value in wanted.items():
        _limit(kind, int(value))


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> tuple[int, int]:
    """Bytes mapped now: in all, and writable and private (which is what RLIMIT_DATA counts)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmSize", "VmData"))  # type: ignore[return-value]


def filters_set(cage: Cage) -> None:
    """Landlock and seccomp, the second and third layer. Raises OSError."""
    if not cage.filters:
        return
    landlock.restrict(_rules(cage))
    seccomp.restrict(memfd=cage.cuda)


def _rules(cage: Cage) -> Sequence[landlock.Rule]:
    read = [(path, landlock.READ) for path in cage.readable]
    write = [(cage.scratch, landlock.FULL), (SHM, landlock.FULL)]
    if cage.cuda:
        # cuInit names its threads through /proc/self/task/*/comm, opened with O_TRUNC, and fails
        # with error 304 if it may not. Other processes' files stay closed by uid and pid namespace.
        write.insert(0, ("/proc", landlock.DEVICE))
    if cage.nesting is Nesting.NONE and "/" not in cage.readable:
        write.pop()  # /dev/shm is everybody's here
        return [*read, *write, *((path, landlock.DEVICE) for path in _devices(cage))]
    return [*read, *write, ("/dev", landlock.DEVICE)]


def _devices(cage: Cage) -> list[str]:
    names = ["null", "zero", "full", "random", "urandom"]
    if cage.cuda:
        names += [name for name in os.listdir("/dev") if name.startswith("nvidia")]  # noqa: PTH208
    return [f"/dev/{name}" for name in names]
