"""The referee's side of building extensions: a cache by content, filled by clean processes alone.

The key is the hash of everything that the build is made from. What is stored under it was made by a
process that received these texts and never ran any kernel's Python; so the worst that a hostile
text can do is to spoil the library that only the same text asks for.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

MAX_REQUEST_NBYTES: Final = 4 << 20
MAX_BUILDS: Final = 16
"""So many extensions one kernel may ask for in one life of its process."""


@dataclass(frozen=True, slots=True)
class Built:
    """A library, or why there is none: ``problem`` is the compiler's, unless ``absent``."""

    library: bytes = b""
    problem: str = ""
    absent: bool = False


Make = Callable[[Mapping[str, Any]], Built]


@dataclass(slots=True)
class Builds:
    """A folder of built libraries. Any thread may ask; each key is built once at a time."""

    make: Make
    folder: Path | None = None
    _own: Any = None
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def get(self, request: Mapping[str, Any]) -> Built:
        """The library for this request, from the folder or newly built. Failures are not kept."""
        text = json.dumps(request, sort_keys=True)
        if len(text) > MAX_REQUEST_NBYTES:
            return Built(problem=f"more than {MAX_REQUEST_NBYTES:,} bytes to build")
        key = build_key(text)
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            path = self._place() / key
            if path.exists():
                return Built(path.read_bytes())
            built = self.make(request)
            if built.library:
                _write(path, built.library)
            return built

    def _place(self) -> Path:
        """The folder; without one, a private one that ends with us."""
        if self.folder is None:
            self._own = tempfile.TemporaryDirectory(prefix="builds-")
            self.folder = Path(self._own.name)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.folder

    def close(self) -> None:
        """Remove the private folder, if there is one."""
        if self._own is not None:
            self._own.cleanup()
            self._own = self.folder = None


def build_key(text: str) -> str:
    """sha256 over the request and the versions of what compiles it."""
    tools = f"{torch.__version__}\0{torch.version.cuda}\0{_capability()}\0"
    return hashlib.sha256(tools.encode() + text.encode()).hexdigest()


def _capability() -> str:
    """Compute capability to build for, as TORCH_CUDA_ARCH_LIST writes it; '' without a GPU."""
    if not torch.cuda.is_available():
        return ""
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def build_environment() -> dict[str, str]:
    """Variables of a builder: it sees no device to ask what to build for."""
    return {"TORCH_CUDA_ARCH_LIST": _capability() or "9.0", "MAX_JOBS": "4"}


def _write(path: Path, library: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(library)
    part.replace(path)
