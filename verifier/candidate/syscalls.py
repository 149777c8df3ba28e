"""The Linux calls that Python's os module lacks, by ctypes. Each raises OSError with its name."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWIPC: Final = 0x08000000
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION_3: Final = 0x20080522
_SYS_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_LAST_CAPABILITY: Final = 63


def check(name: str, result: int) -> int:
    """Raise OSError for a failed call."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(name: str, number: int, *args: object) -> int:
    return check(name, _LIBC.syscall(number, *args))


def prctl(option: int, *args: int) -> None:
    values = [ctypes.c_ulong(value) for value in (*args, 0, 0, 0, 0)[:4]]
    check(f"prctl({option})", _LIBC.prctl(option, *values))


def unshare(flags: int) -> None:
    check("unshare", _LIBC.unshare(flags))


def mount(source: str, target: str, fstype: str, flags: int, data: str = "") -> None:
    result = _LIBC.mount(
        source.encode(), target.encode(), fstype.encode(), ctypes.c_ulong(flags), data.encode()
    )
    check(f"mount {target}", result)


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def capabilities_drop() -> None:
    """Give up every capability, for good: ambient, bounding, effective, permitted, inheritable."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    _bounding_drop()
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    syscall("capset", _SYS_CAPSET[os.uname().machine], ctypes.byref(header), data)


def _bounding_drop() -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # no such capability here, or no right to touch the bounding set
            return
