"""One file that holds a corpus: JSON lines, gzip where its name ends so. It travels to a GPU host
that has neither the corpus nor a network."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from verifier.audit.corpus import Corpus, CorpusError, CorpusKernel, CorpusTask
from verifier.records import RecordError, from_json, to_json

FORMAT: Final = "kernelhub-audit-pack-1"
_SUFFIXES: Final = (".jsonl", ".jsonl.gz")


def is_pack(path: Path) -> bool:
    """Whether the file calls itself a packed corpus in its first line."""
    if not path.is_file() or not path.name.endswith(_SUFFIXES):
        return False
    try:
        with _open(path) as file:
            first = json.loads(file.readline(4096))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and first.get("format") == FORMAT


def write_pack(path: Path, corpus: Corpus) -> int:
    """Write the corpus; returns the size of the file in bytes. Tasks come before their kernels, and
    equal corpora give equal files."""
    used = {kernel.task for kernel in corpus.judgeable}
    lines = [
        _line({"format": FORMAT}),
        *(_line({**to_json(corpus.tasks[name]), "kind": "task"}) for name in sorted(used)),
        *(_line({**to_json(kernel), "kind": "kernel"}) for kernel in corpus.kernels),
    ]
    text = "".join(lines).encode("utf-8")
    path.write_bytes(gzip.compress(text, 9, mtime=0) if path.suffix == ".gz" else text)
    return path.stat().st_size


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


def read_pack(path: Path) -> Corpus:
    """The corpus in the file. Raises CorpusError naming the line that does not fit."""
    tasks: dict[str, CorpusTask] = {}
    kernels: list[CorpusKernel] = []
    for kind, document in _lines(path):
        if kind == "task":
            task = from_json(CorpusTask, document)
            tasks[task.name] = task
        elif kind == "kernel":
            kernels.append(from_json(CorpusKernel, document))
    return Corpus(tasks, tuple(kernels))


def _lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    document = json.loads(line)
                    kind = document.pop("kind") if number > 1 else _head(document)
                    yield kind, document
                except (ValueError, KeyError, TypeError, AttributeError, RecordError) as error:
                    raise CorpusError(f"{path}, line {number}: {error}") from error
    except (OSError, EOFError) as error:
        raise CorpusError(f"{path}: {error}") from error


def _head(document: Mapping[str, Any]) -> str:
    if document.get("format") != FORMAT:
        raise ValueError(f"this is no packed corpus of the format {FORMAT}")
    return "head"


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
