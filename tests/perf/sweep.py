"""``make sweep``: every kernel whose truth is known, through all twelve gates, on this device.

Judged are the fuzz-oracle corpus, each gate's violators and twins, and the hostile kernels with
theirs, several at once: those that this device can judge. Prints a line for each kernel and a
summary; exits 1 when an honest kernel is not accepted or a wrong one is.
"""

from __future__ import annotations

import argparse
import atexit
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks.fuzzoracle.suite import HERE, read_corpus
from kernelhub.launch.process import LIBC, PR_SET_PDEATHSIG
from tests.adversarial.corpus import Where, attacks, twins
from tests.gates.caged import ROOT, task_folder
from verifier.environment import choose_device
from verifier.records import DeviceMode, GateStatus, Outcome
from verifier.session import Job, Session

SEED: Final = 42
MARKS: Final = {
    GateStatus.PASS: "+",
    GateStatus.FAIL: "x",
    GateStatus.NOT_APPLICABLE: "-",
    GateStatus.INCONCLUSIVE: "?",
    GateStatus.ERROR: "!",
}
_SESSIONS: list[Session] = []
"""The warm verifier of a worker process."""


@dataclass(frozen=True, slots=True)
class Known:
    """A kernel and whether it is honest."""

    kernel: Path
    task: Path
    role: str

    @property
    def honest(self) -> bool:
        return self.role in ("control", "twin")


@dataclass(frozen=True, slots=True)
class Line:
    """What one verdict came to; ``gates`` has one mark for each, in order."""

    known: Known
    outcome: Outcome
    gates: str
    seconds: float

    @property
    def right(self) -> bool:
        return self.outcome is (Outcome.ACCEPTED if self.known.honest else Outcome.REJECTED)

    def __str__(self) -> str:
        word = "ok " if self.right else "BAD"
        where = self.known.kernel.relative_to(ROOT)
        return f"{word} {self.gates} {self.seconds:6.1f} s  {self.known.role:9} {where}"


def known_kernels(only: str = "", mode: DeviceMode = DeviceMode.CPU_INTERPRET) -> list[Known]:
    """All of them whose path contains ``only``, and that can be judged in this mode."""
    found = [Known(one.path, HERE / "tasks" / one.task, one.role) for one in read_corpus()]
    found += _of_gates("twin")
    found += _of_gates("violator")
    found += _adversarial(mode)
    return [one for one in found if only in str(one.kernel)]


def _of_gates(role: str) -> Iterator[Known]:
    for kernel in sorted((ROOT / "tests/gates").glob(f"g*/{role}*.py")):
        yield Known(kernel, task_folder(kernel), role)


def _adversarial(mode: DeviceMode) -> Iterator[Known]:
    other = Where.INTERPRETER if mode is DeviceMode.CUDA else Where.DEVICE
    for each, kernel in twins():
        if each.twins_where is not other:
            yield Known(kernel, task_folder(kernel), "twin")
    for each, one in attacks():
        if one.where is not other:
            yield Known(each.path(one), task_folder(each.path(one)), "hostile")


def _open(device: str, sharers: int) -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))  # a killed sweep leaves nothing
    session = Session(device, sharers=sharers)
    atexit.register(session.close)
    _SESSIONS.append(session)


def _judge(known: Known) -> Line:
    start_s = time.monotonic()
    verdict = _SESSIONS[0].judge(Job(known.task, known.kernel, seed=SEED, timed=False))
    marks = "".join(MARKS[result.status] for result in verdict.gates)
    return Line(known, verdict.outcome, marks, time.monotonic() - start_s)


def sweep(kernels: list[Known], device: str, workers: int) -> Iterator[Line]:
    """The lines as they come."""
    context = get_context("spawn")
    opening = partial(_open, device, workers)
    with ProcessPoolExecutor(workers, context, initializer=opening) as pool:
        try:
            for done in as_completed([pool.submit(_judge, known) for known in kernels]):
                yield done.result()
        finally:  # interrupted, it ends with the kernels in progress
            pool.shutdown(cancel_futures=True)


def summary(lines: list[Line]) -> str:
    """How many of each role were judged rightly."""
    roles = Counter(line.known.role for line in lines)
    right = Counter(line.known.role for line in lines if line.right)
    return ", ".join(f"{role} {right[role]}/{count}" for role, count in sorted(roles.items()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sweep", description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="kernels judged at once")
    parser.add_argument("--only", default="", help="part of a kernel's path")
    options = parser.parse_args()
    start_s, lines = time.monotonic(), []
    known = known_kernels(options.only, choose_device(options.device)[0])
    for line in sweep(known, options.device, options.workers):
        print(line, flush=True)  # noqa: T201
        lines.append(line)
    took = f"{time.monotonic() - start_s:.0f} s with {options.workers} at once"
    print(f"judged as they deserve: {summary(lines)}; {took}")  # noqa: T201
    return 0 if lines and all(line.right for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
