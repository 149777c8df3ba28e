"""The catalogue of the suite, read from its folders: tasks/ and kernels/<group>/index.json.

Two corpora that are never mixed: "P1 replica, 26 entries" (16 controls and 10 bugs over 14 ops, to
compare with the paper) and "26 distinct ops" (a control and at least one illusion each).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kernelhub.core.suites import KernelSource, TaskSource, WorkloadSource

HERE: Final = Path(__file__).resolve().parent
GROUPS: Final = ("p1_replica", "illusions26")
ROLES: Final = frozenset({"control", "bug", "illusion"})


class CorpusError(ValueError):
    """A file of the corpus does not fit; the message names it and what to mend."""


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """One line of an index: a kernel, what is wrong with it, and when that does not show."""

    label: str
    task: str
    role: str
    defect: str
    hides: str
    group: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise CorpusError(f"{self.label}: role {self.role!r} is none of {sorted(ROLES)}")
        if (self.role == "control") == bool(self.defect):
            raise CorpusError(f"{self.label}: a defect is named exactly where there is one")

    @property
    def path(self) -> Path:
        return HERE / "kernels" / self.group / f"{self.label}.py"

    @property
    def note(self) -> str:
        return f"{self.defect}; hides where {self.hides}" if self.defect else ""


def read_group(group: str) -> tuple[CorpusEntry, ...]:
    """The entries of one corpus. Raises CorpusError for an index that does not fit."""
    path = HERE / "kernels" / group / "index.json"
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["kernels"]
        return tuple(
            CorpusEntry(
                label=row["label"],
                task=row["task"],
                role=row["role"],
                defect=row["defect"],
                hides=row["hides"],
                group=group,
            )
            for row in rows
        )
    except (OSError, ValueError, KeyError) as error:
        raise CorpusError(f"{path}: {error}") from error


def read_corpus() -> tuple[CorpusEntry, ...]:
    """Every entry of every corpus, in the order in which the demo campaign judges them."""
    return tuple(entry for group in GROUPS for entry in read_group(group))


def _task_source(folder: Path) -> TaskSource:
    contract = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    return TaskSource(
        slug=contract["slug"],
        title=contract["title"],
        category=contract["category"],
        tags=tuple(contract.get("tags", ())),
        contract=contract,
        reference=(folder / "reference.py").read_text(encoding="utf-8"),
        workloads=tuple(_workload(row) for row in contract.get("workloads", ())),
    )


def _workload(row: dict[str, Any]) -> WorkloadSource:
    return WorkloadSource(
        name=row["name"],
        dims=row["dims"],
        dtypes=row.get("dtypes", {}),
        weight=row.get("weight", 1.0),
        phase=row.get("phase", ""),
    )


def _kernel_source(entry: CorpusEntry) -> KernelSource:
    return KernelSource(
        task_slug=entry.task,
        label=entry.label,
        source=entry.path.read_text(encoding="utf-8"),
        expectation=entry.role,
        group=entry.group,
        note=entry.note,
    )


class FuzzOracle:
    """The suite as core sees it."""

    slug = "fuzzoracle"
    title = "Seeded fuzz oracle"
    description = (
        "Kernels whose faults are known. P1 replica: 26 entries over 14 ops, ten of them with a "
        "transcription error. 26 distinct ops: an honest kernel each, and wrong ones that the "
        "loose test accepts."
    )
    order = 10

    def tasks(self) -> Iterator[TaskSource]:
        """Every task folder; the slug is the folder's name."""
        for folder in sorted((HERE / "tasks").iterdir()):
            if (folder / "task.json").is_file():
                yield _task_source(folder)

    def corpus(self) -> Iterator[KernelSource]:
        """Both corpora, the replica first."""
        return (_kernel_source(entry) for entry in read_corpus())


SUITE: Final = FuzzOracle()
