"""How many CUDA contexts a second the driver makes: ``python -m tests.perf.contexts`` on a GPU.

A process of the verifier's that runs kernels costs one. For each number of processes at once it
prints the rate, how long each lives, and how much of that the context and torch's first operations
take. Each process is forked from one that has imported torch and has asked for no device.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

import torch

AT_ONCE: Final = (1, 4, 8, 16)
ROUNDS: Final = 3
_MOST_NBYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Life:
    """Of one process, in seconds."""

    whole_s: float
    context_s: float
    operations_s: float


def _live(report: int) -> None:
    """In a child: a context, torch's first operations, the end."""
    start = time.perf_counter()
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.cuda.current_stream().synchronize()
    made = time.perf_counter()
    torch.empty(1 << 20, dtype=torch.uint8, device="cuda:0").fill_(3).cpu()
    done = time.perf_counter()
    os.write(report, json.dumps([made - start, done - made]).encode())
    os._exit(0)


class Living:
    """The processes that are under way."""

    def __init__(self) -> None:
        self._reports: dict[int, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._reports)

    def begin(self) -> None:
        reading, writing = os.pipe()
        born = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            _live(writing)
        os.close(writing)
        self._reports[pid] = reading, born

    def wait(self) -> Life:
        """The next that ends. Raises RuntimeError for one that had no device."""
        pid, status = os.wait()
        reading, born = self._reports.pop(pid)
        said = os.read(reading, _MOST_NBYTES)
        os.close(reading)
        if not said:
            raise RuntimeError(f"a process ended with {status} and no context")
        return Life(time.perf_counter() - born, *json.loads(said))


def lives(at_once: int, count: int) -> list[Life]:
    """``count`` processes in all, so many at once as long as there are any to begin."""
    living, ended = Living(), []
    for number in range(count):
        if number >= at_once:
            ended.append(living.wait())
        living.begin()
    while living:
        ended.append(living.wait())
    return ended


def line(at_once: int) -> str:
    """The figures of one number of processes."""
    start = time.perf_counter()
    found = lives(at_once, at_once * ROUNDS)
    rate = len(found) / (time.perf_counter() - start)
    parts = (mean(getattr(life, name) for life in found) for name in Life.__slots__)
    return f"{at_once:7d}  {rate:8.1f}  " + "  ".join(f"{part:10.3f}" for part in parts)


def main(words: Sequence[str]) -> int:
    """Print the table; 2 without a GPU."""
    if torch.version.cuda is None or not Path("/dev/nvidiactl").exists():  # to ask would be to use
        sys.stderr.write("contexts: there is no NVIDIA GPU here, or torch was built without CUDA\n")
        return 2
    sys.stdout.write("at once  a second     whole s   context s     first s\n")
    for at_once in map(int, words) if words else AT_ONCE:
        sys.stdout.write(line(at_once) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
