"""The node's own folder: task folders by digest, the kernel file of the run at hand."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_runner.protocol import LeasedRun, TaskFolder


class ScratchError(Exception):
    """What the hub sent is not what it says it is."""


class Scratch:
    """Files below ``root``, which nobody else may read: kernels may be unpublished."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tasks = root / "tasks"
        self._kernels = root / "kernels"
        for folder in (root, self._tasks, self._kernels):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fetching = threading.Lock()
        self._sweep()

    def _sweep(self) -> None:
        """Removes what an agent that was killed left behind."""
        for leftover in (*self._kernels.iterdir(), *self._tasks.glob("*.part-*")):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)

    def task(self, digest: str, fetch: Callable[[], TaskFolder]) -> Path:
        """The task folder of that digest, fetched at its first use; ScratchError if it differs."""
        folder = self._tasks / digest
        with self._fetching:
            if not folder.is_dir():
                files = fetch()
                if files.digest != digest:
                    raise ScratchError(f"the task folder has digest {files.digest}, not {digest}")
                self._materialise(folder, files)
        return folder

    def _materialise(self, folder: Path, files: TaskFolder) -> None:
        """Written beside and renamed, so that a folder of that name is always whole."""
        part = folder.with_name(f"{folder.name}.part-{os.getpid()}")
        part.mkdir(mode=0o700)
        (part / "task.json").write_text(files.contract, encoding="utf-8")
        (part / "reference.py").write_text(files.reference, encoding="utf-8")
        part.rename(folder)

    @contextmanager
    def kernel(self, leased: LeasedRun) -> Iterator[Path]:
        """The kernel file, for as long as the run is judged."""
        content = leased.source.encode("utf-8")
        if hashlib.sha256(content).hexdigest() != leased.sha256:
            raise ScratchError("the kernel source does not have its sha256")
        path = self._kernels / f"{leased.run}.py"
        path.write_bytes(content)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
