"""Asks ``verifier.audit.derive`` for tasks, in a process of its own: this one holds no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from verifier.audit.corpus import CorpusError, CorpusTask
from verifier.records import from_json, to_json


class Kind(StrEnum):
    """How a benchmark writes a task down."""

    CALLS = "calls"
    """A function, and a test that calls it."""
    MODULE = "module"
    """KernelBench's ``Model``, ``get_inputs`` and ``get_init_inputs``, in ``code`` alone."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a benchmark gives for one task: its reference, the test below it, and where it stands.

    ``stem`` is the function that the test is about where it calls several; ``helpers`` are modules
    that the test imports. ``shapes_are_free``: whether the benchmark asks for a function of any
    shape, as its description of the task says, or for one of the shapes of its test alone.
    """

    name: str
    title: str
    category: str
    code: str
    test: str
    stem: str
    helpers: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.CALLS
    shapes_are_free: bool = True
    library_calls: bool = True
    """Whether a wrapper may leave part of the work to torch: these benchmarks do not forbid it."""


@dataclass(frozen=True, slots=True)
class Derived:
    """The task and the lines that a prediction gets appended; or the problem that forbids it."""

    name: str
    task: CorpusTask | None = None
    function: str = ""
    entry: str = ""
    shim: str = ""
    problem: str = ""


def derive_all(definitions: Iterable[Definition], workers: int = 0) -> dict[str, Derived]:
    """The derived task of each definition, by name. Raises CorpusError when the deriving breaks."""
    waiting = list(definitions)
    count = min(workers or os.cpu_count() or 1, len(waiting)) or 1
    with ThreadPoolExecutor(count) as pool:
        answers = pool.map(_derive, [waiting[start::count] for start in range(count)])
    return {one.name: one for part in answers for one in part}


def _derive(definitions: list[Definition]) -> list[Derived]:
    if not definitions:
        return []
    lines = "".join(json.dumps(to_json(one)) + "\n" for one in definitions)
    command = [sys.executable, "-m", "verifier.audit.derive"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    answers = done.stdout.splitlines()
    if done.returncode or len(answers) != len(definitions):
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise CorpusError(f"the tasks could not be derived: {last[0]}")
    return [from_json(Derived, json.loads(line)) for line in answers]
