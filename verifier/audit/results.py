"""One line a kernel, appended whole and at once, so that an audit can be stopped and taken up."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verifier.audit.corpus import Content, CorpusError, CorpusKernel
from verifier.records import RecordError, Verdict, from_json, to_json


@dataclass(frozen=True, slots=True)
class Row:
    """How one kernel fared: a verdict, or the error that kept us from one. Never both.

    ``verdict`` lacks the kernel's source, which the corpus holds. ``error_kind`` is 'task' (the
    reference cannot be used) or 'infrastructure' (our machinery broke, twice).
    """

    key: str
    corpus: str
    author: str
    task: str
    category: str
    content: Content
    sha256: str
    seed: int
    attempt: int
    seconds: float
    worker: int = 0
    worker_rss_mib: int = 0
    verdict: Verdict | None = None
    error_kind: str = ""
    error: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.verdict is None) != bool(self.error_kind):
            raise RecordError(f"{self.key}: a row holds a verdict or an error, and only one")


def row_of(kernel: CorpusKernel, **found: Any) -> Row:
    """The row of a kernel; ``found`` is what the judging brought."""
    return Row(
        key=kernel.key,
        corpus=kernel.corpus,
        author=kernel.author,
        task=kernel.task,
        category=kernel.category,
        content=kernel.content,
        sha256=kernel.sha256,
        claims=kernel.claims,
        **found,
    )


class ResultsFile:
    """The results of one audit. Each line is one write; a line cut off by a crash is dropped."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        if path.exists() and not resume:
            raise CorpusError(f"{path} exists: go on with --resume, or name another --out")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _drop_torn_line(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, row: Row) -> None:
        """Keep one row. The line is on disk when this returns."""
        line = json.dumps(to_json(row), separators=(",", ":"), allow_nan=False) + "\n"
        text = line.encode("utf-8")
        if os.write(self._file, text) != len(text):
            raise CorpusError(f"{self.path}: no room for another row")
        os.fsync(self._file)

    def close(self) -> None:
        """Stop writing; safe to repeat."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _drop_torn_line(path: Path) -> None:
    """Cut what follows the last end of line: it was being written when everything stopped."""
    with path.open("rb+") as file:
        text = file.read()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            file.truncate(whole)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows, one at a time. Raises CorpusError naming the line that does not fit."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith("\n"):
                    return  # still being written
                try:
                    yield from_json(Row, json.loads(line))
                except (ValueError, RecordError) as error:
                    raise CorpusError(f"{path}, line {number}: {error}") from error
    except OSError as error:
        raise CorpusError(f"{path}: {error.strerror}") from error


def latest(rows: Iterable[Row]) -> list[Row]:
    """One row a kernel, the last one: a kernel whose first row tells of an error of ours is judged
    again by a resumed audit."""
    return list({row.key: row for row in rows}.values())
