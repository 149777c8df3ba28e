"""Landlock: a process gives up paths, TCP and signals to outsiders. ABI 1 to 7, best effort above.

Source of numbers: include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Final

from verifier.candidate.syscalls import PR_SET_NO_NEW_PRIVS, prctl, syscall

_CREATE: Final = 444
_ADD_RULE: Final = 445
_RESTRICT: Final = 446
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FS_BASE: Final = (1 << 13) - 1
_TCP: Final = 0b11
_SCOPES: Final = 0b11  # abstract Unix sockets, signals

READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
DEVICE: Final = READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
FULL: Final = _FS_BASE | _REFER | _TRUNCATE | _IOCTL_DEV
_FOR_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

Rule = tuple[str, int]


class _Attributes(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock ABI version, 0 without Landlock."""
    try:
        return syscall("landlock", _CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def _handled(version: int) -> int:
    handled = _FS_BASE
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    return handled | (_IOCTL_DEV if version >= 5 else 0)


def restrict(rules: Iterable[Rule]) -> int:
    """Allow this process (and its children) only what ``rules`` list; the ABI used, or 0.

    Paths that do not exist are skipped. Raises OSError if the kernel has Landlock but refuses.
    """
    version = abi()
    if not version:
        return 0
    handled = _handled(version)
    attributes = _Attributes(handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = syscall(
        "landlock_create", _CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0
    )
    for path, allowed in rules:
        _allow(ruleset, path, allowed & handled)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall("landlock_restrict", _RESTRICT, ruleset, 0)
    os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed &= allowed if os.path.isdir(path) else _FOR_FILES  # noqa: PTH112 - after fork, cheap
        beneath = _PathBeneath(allowed, fd)
        syscall("landlock_add", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(fd)
