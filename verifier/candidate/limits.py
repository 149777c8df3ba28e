"""What one kernel may use up. Every number has a unit in its name or is a count."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one candidate process and of all that it starts."""

    call_s: float = 20.0
    load_s: float = 60.0
    build_s: float = 300.0
    """For one C++ or CUDA extension, in a process of its own, on top of ``load_s``."""
    memory_bytes: int = 4 * GIB
    """On top of the libraries and of the shared arenas, all processes of the kernel together."""
    shared_bytes: int = 4 * GIB
    """Inputs and earlier inputs that the referee has laid into shared memory."""
    output_bytes: int = 256 * MIB
    file_bytes: int = 256 * MIB
    scratch_bytes: int = 512 * MIB
    processes: int = 128
    """Processes and threads together."""
    open_files: int = 256
    cpu_s: int = 900
    threads: int = 1
    """Threads that torch may use for one operation on the CPU."""
    log_bytes: int = 64 * 1024
    crashes: int = 64
    """After this many deaths of its process a kernel is not tried again."""

    def to_json(self) -> dict[str, float]:
        return asdict(self)
