"""A small seccomp filter: system calls that no kernel needs and that attacks like.

Third layer behind namespaces and Landlock. It closes what those leave open: new user namespaces,
io_uring, bpf, perf, keyrings, ptrace, System V IPC, memory files outside every limit, and sockets
that are not Unix sockets. Denied calls fail with EPERM, so that a probe ends in an exception.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Final

from verifier.candidate.syscalls import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, prctl

_MODE_FILTER: Final = 2
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NR, _ARCH, _ARG0 = 0, 4, 16  # offsets in struct seccomp_data
_NEW_NAMESPACES: Final = 0x7E020000  # every CLONE_NEW* flag that clone knows
_X32: Final = 0x40000000
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES: Final = frozenset(_AUDIT_ARCH)
"""Machine names for which there is a filter."""

# name: (x86_64, aarch64)
_DENIED: Final = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "init_module": (175, 105), "finit_module": (313, 273),
    "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224), "acct": (163, 89),
    "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "memfd_secret": (447, 447),
}  # fmt: skip
_MEMFD_CREATE: Final = (319, 279)
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _deny(number: int, error: int) -> list[bytes]:
    return [_op(_JEQ, number, 0, 1), _op(_RETURN, _ERRNO | error)]


def _on_argument(number: int, test: int, value: int, yes: int, no: int) -> list[bytes]:
    """For call ``number``: load the first argument, test it, and deny where ``yes``/``no`` is 0."""
    return [
        _op(_JEQ, number, 0, 4),
        _op(_LOAD, _ARG0),
        _op(test, value, yes, no),
        _op(_RETURN, _ERRNO | _EPERM),
        _op(_RETURN, _ALLOW),
    ]


def program(machine: str, *, memfd: bool) -> list[bytes]:
    """The filter's instructions for this machine."""
    column = ("x86_64", "aarch64").index(machine)
    denied = [numbers[column] for numbers in _DENIED.values()]
    denied += [] if memfd else [_MEMFD_CREATE[column]]
    code = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT_ARCH[machine], 1, 0), _op(_RETURN, _KILL)]
    code.append(_op(_LOAD, _NR))
    if machine == "x86_64":
        code += [_op(_JGE, _X32, 0, 1), _op(_RETURN, _KILL)]
    for number in denied:
        code += _deny(number, _EPERM)
    # glibc falls back from clone3, whose flags a filter cannot see, to clone.
    code += _deny(_CLONE3[column], _ENOSYS)
    code += _on_argument(_CLONE[column], _JSET, _NEW_NAMESPACES, 0, 1)
    code += _on_argument(_SOCKET[column], _JEQ, 1, 1, 0)  # AF_UNIX
    return [*code, _op(_RETURN, _ALLOW)]


def restrict(*, memfd: bool) -> bool:
    """Install the filter in this process for good; False on a machine that it does not know.

    Raises OSError if the kernel refuses.
    """
    machine = os.uname().machine
    if machine not in _AUDIT_ARCH:
        return False
    code = b"".join(program(machine, memfd=memfd))
    buffer = ctypes.create_string_buffer(code, len(code))
    header = _Program(len(code) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))
    return True
