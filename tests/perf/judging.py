"""How long the verifier takes, through the protocol that a node agent speaks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.fuzzoracle.suite import HERE, CorpusEntry, read_group

REPO: Final = Path(__file__).resolve().parents[2]
ENDS: Final = frozenset({"verdict", "error", "cancelled"})


class Verifier:
    """A warm ``python -m verifier serve``."""

    def __init__(self, sent: IO[str], received: IO[str]) -> None:
        self._sent, self._received = sent, received
        self._until({"ready"})

    def judge(self, entry: CorpusEntry) -> float:
        """Seconds from the request to the verdict. RuntimeError when there is none."""
        start_s = time.monotonic()
        request = {
            "id": entry.label,
            "task": str(HERE / "tasks" / entry.task),
            "kernel": str(entry.path),
            "entry": "run",
            "seed": 1,
            "gates": None,
            "measure": True,
        }
        self._sent.write(json.dumps(request) + "\n")
        self._sent.flush()
        last = self._until(ENDS)
        if last["event"] != "verdict":
            raise RuntimeError(f"{entry.label}: {last['payload']}")
        return time.monotonic() - start_s

    def _until(self, kinds: set[str] | frozenset[str]) -> dict[str, Any]:
        for line in self._received:
            event: dict[str, Any] = json.loads(line)
            if event["event"] in kinds:
                return event
        raise RuntimeError("the verifier ended")


@contextmanager
def warm_verifier() -> Iterator[Verifier]:
    with subprocess.Popen(
        [sys.executable, "-m", "verifier", "serve", "--device", "auto"],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Verifier(process.stdin, process.stdout)
        process.stdin.close()  # the end of its input ends it


def softmax_control() -> CorpusEntry:
    """The honest row softmax of the replica that is written in Triton: what users submit."""
    entries = read_group("p1_replica")
    return next(one for one in entries if one.label == "softmax_triton" and one.role == "control")


def softmax_s(verifier: Verifier) -> float:
    """The second judgement: the first one warms caches."""
    verifier.judge(softmax_control())
    return verifier.judge(softmax_control())


def replica_s(verifier: Verifier) -> float:
    """All 26 entries, one after the other."""
    return sum(verifier.judge(entry) for entry in read_group("p1_replica"))
