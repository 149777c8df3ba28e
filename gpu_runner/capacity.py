"""How many verifiers this machine can run side by side on one device."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from gpu_runner.config import ConfigError

log = logging.getLogger(__name__)

GIB: Final = 1 << 30
WORKER_BYTES: Final = 8 * GIB
"""Host memory for one verifier: torch twice (referee and forkserver), a kernel at its limit."""
WORKERS_MAX: Final = 8
"""Beyond this the device is the bottleneck: it is one, and each timing has it alone."""

_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_MEMINFO: Final = Path("/proc/meminfo")


def workers_default(queue: str, *, cores: int, memory_bytes: int) -> int:
    """A worker for every two cores and every 8 GiB; one where the processor is the device."""
    if not queue.startswith("sm"):
        return 1
    return max(1, min(cores // 2, memory_bytes // WORKER_BYTES, WORKERS_MAX))


def workers_here(queue: str) -> int:
    """The default on this machine."""
    return workers_default(queue, cores=len(os.sched_getaffinity(0)), memory_bytes=memory_bytes())


def workers_wanted(asked: int, queue: str) -> int:
    """What was asked for, 0 for the default. ConfigError for what makes no sense; a wish for more
    than the memory seems to hold is granted, with a warning, for some machines grow theirs."""
    if asked < 0:
        raise ConfigError(f"--workers {asked}: there are no fewer than 1")
    usual = workers_here(queue)
    if asked * WORKER_BYTES > memory_bytes() and asked > 1:
        log.warning(
            "%d workers may need %d GiB, and this machine has %d GiB",
            *(asked, asked * WORKER_BYTES // GIB, memory_bytes() // GIB),
        )
    return asked or usual


def memory_bytes(limits: tuple[Path, ...] = _LIMITS, meminfo: Path = _MEMINFO) -> int:
    """What this process may use: the machine's memory, or less where its control group says so."""
    found = [_total(meminfo), *(_limit(path) for path in limits)]
    return min((nbytes for nbytes in found if nbytes), default=0)


def _total(meminfo: Path) -> int:
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _limit(path: Path) -> int:
    """0 where there is no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
