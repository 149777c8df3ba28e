"""Several warm verifiers on one device, and a queue of kernels that is sorted by task.

A worker takes a few kernels of one task at a time, so that what it has made of the reference is
used again. A kernel whose worker dies is tried once more, by a fresh worker; a second death, or
a task that cannot be used, ends in a row that says so. No other kernel is touched by it.
"""

from __future__ import annotations

import itertools
import math
import shutil
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from verifier.audit.corpus import Corpus, CorpusKernel, CorpusTask
from verifier.audit.results import Row, row_of
from verifier.audit.worker import Refused, Worker, WorkerError
from verifier.records import Verdict
from verifier.referee.generator import derive_seed

CHUNK: Final = 8
"""Kernels of one task that a worker takes at once."""

ATTEMPTS: Final = 2
START_ATTEMPTS: Final = 3


class PoolError(RuntimeError):
    """No worker can be started; the message is what the last one said."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to judge. After ``limit_s`` seconds what is left of a kernel's gates stays open.

    A worker is replaced after ``recycle`` kernels (0: never). ``options`` go to `serve` as they
    are.
    """

    seed: int
    device: str = "auto"
    workers: int = 1
    limit_s: float = 120.0
    recycle: int = 0
    gates: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    stop_after_s: float | None = None
    """No kernel is begun after so many seconds; the rest is for a resumed audit."""


@dataclass(slots=True)
class Pool:
    """Judges the kernels of one corpus; ``keep`` gets each row, one call at a time."""

    corpus: Corpus
    plan: Plan
    keep: Callable[[Row], None]
    _queue: deque[tuple[CorpusKernel, ...]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _faults: list[BaseException] = field(default_factory=list)
    _deadline: float = math.inf

    def run(self, kernels: Sequence[CorpusKernel]) -> None:
        """Judge them all. Raises PoolError when no worker starts; KeyboardInterrupt stops soon."""
        self._queue.extend(chunks(kernels))
        if self.plan.stop_after_s is not None:
            self._deadline = time.monotonic() + self.plan.stop_after_s
        with tempfile.TemporaryDirectory(prefix="audit-") as scratch:
            count = min(self.plan.workers, len(self._queue))
            seats = [Seat(n, self.plan, Path(scratch) / str(n)) for n in range(count)]
            threads = [threading.Thread(target=self._work, args=(seat,)) for seat in seats]
            for thread in threads:
                thread.start()
            try:
                while any(thread.is_alive() for thread in threads) and not self._faults:
                    time.sleep(0.1)
            finally:
                self._stop.set()
                for seat in seats:
                    seat.close()  # what is being judged is judged again after --resume
                for thread in threads:
                    thread.join()
        if self._faults:
            raise self._faults[0]

    # --- one thread

    def _work(self, seat: Seat) -> None:
        try:
            for chunk in self._chunks():
                task = seat.lay_out(self.corpus.tasks[chunk[0].task])
                for kernel in chunk:
                    if time.monotonic() > self._deadline:
                        return
                    row = seat.judge(kernel, task)
                    if self._stop.is_set():
                        return
                    self._keep(row)
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            self._faults.append(error)
            self._stop.set()
        finally:
            seat.close()

    def _chunks(self) -> Iterator[tuple[CorpusKernel, ...]]:
        while not self._stop.is_set():
            try:
                yield self._queue.popleft()
            except IndexError:
                return

    def _keep(self, row: Row) -> None:
        with self._lock:
            self.keep(row)


def chunks(kernels: Iterable[CorpusKernel]) -> Iterator[tuple[CorpusKernel, ...]]:
    """The kernels by task, each task in portions of at most CHUNK."""
    ordered = sorted(kernels, key=lambda kernel: (kernel.task, kernel.key))
    for _, group in itertools.groupby(ordered, key=lambda kernel: kernel.task):
        rest = list(group)
        for start in range(0, len(rest), CHUNK):
            yield tuple(rest[start : start + CHUNK])


@dataclass(slots=True)
class Seat:
    """One place in the pool: a worker, or the next one after it died, and a folder of its own."""

    number: int
    plan: Plan
    folder: Path
    _worker: Worker | None = None
    _closed: bool = False

    def lay_out(self, task: CorpusTask) -> Path:
        """The task's folder; that of the task before is removed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        folder = self.folder / "task"
        folder.mkdir(parents=True)
        (folder / "task.json").write_text(task.contract, encoding="utf-8")
        (folder / "reference.py").write_text(task.reference, encoding="utf-8")
        return folder

    def judge(self, kernel: CorpusKernel, task: Path) -> Row:
        """The kernel's row, after at most ATTEMPTS tries."""
        # One seed a task: its kernels meet the same inputs, which are drawn once.
        seed = derive_seed(self.plan.seed, kernel.task) % 2**48
        started = time.perf_counter()
        row = row_of(kernel, seed=seed, attempt=1, seconds=0.0, error_kind="infrastructure")
        for attempt in range(1, ATTEMPTS + 1):
            row = replace(row, attempt=attempt, worker=self.number)
            row = self._attempt(row, kernel, task)
            if row.error_kind != "infrastructure":
                break
        return replace(row, seconds=round(time.perf_counter() - started, 3))

    def _attempt(self, row: Row, kernel: CorpusKernel, task: Path) -> Row:
        try:
            verdict = self._verdict(row, kernel, task)
        except Refused as refusal:
            kind = "task" if refusal.kind == "task" else "infrastructure"
            return replace(row, error_kind=kind, error=str(refusal))
        except WorkerError as error:
            self._worker = None
            return replace(row, error=str(error))
        rss_mib = self._worker.rss_mib() if self._worker else 0
        lean = replace(verdict, kernel=replace(verdict.kernel, source=""))
        return replace(row, verdict=lean, error_kind="", error="", worker_rss_mib=rss_mib)

    def _verdict(self, row: Row, kernel: CorpusKernel, task: Path) -> Verdict:
        path = self.folder / "kernel.py"
        path.write_text(kernel.source, encoding="utf-8", errors="surrogatepass")
        job = {
            "task": str(task),
            "kernel": str(path),
            "entry": kernel.entry,
            "seed": row.seed,
            "measure": False,
            **({"gates": list(self.plan.gates)} if self.plan.gates else {}),
        }
        return self._warm().judge(kernel.key, job, self.plan.limit_s)

    def _warm(self) -> Worker:
        """The worker, started or replaced where that is due."""
        if self._worker and self.plan.recycle and self._worker.judged >= self.plan.recycle:
            self._worker.end()
            self._worker = None
        if self._closed:
            raise WorkerError("the audit was stopped")
        if self._worker is None:
            self._worker = start(self.number, self.plan)
        return self._worker

    def close(self) -> None:
        """End the worker, also from another thread; no other one follows."""
        self._closed = True
        if self._worker is not None:
            self._worker.end()


def start(number: int, plan: Plan) -> Worker:
    """A warm worker. Raises PoolError when several starts in a row fail."""
    problem = ""
    for attempt in range(START_ATTEMPTS):
        try:
            return Worker(number, plan.device, (*plan.options, "--sharers", str(plan.workers)))
        except (WorkerError, OSError) as error:
            problem = str(error)
            sys.stderr.write(f"audit: worker {number}, start {attempt + 1}: {problem}\n")
    raise PoolError(f"worker {number} does not start: {problem}")
