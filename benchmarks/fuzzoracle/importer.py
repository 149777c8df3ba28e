"""Reads the figures of the upstream corpus and brings them into ours.

The format is one JSON document ``{"source", "entries": {label: fields of meta.json}}``, or
upstream's own folder of entries, each with its meta.json. Only figures cross over (dims,
candidates, dtypes, tolerances, the declared verdict); kernels and references here are our own. The
declared verdict is kept as what it is: a constant that upstream never measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzzoracle.suite import HERE, CorpusError

Document = dict[str, Any]

UPSTREAM: Final = (
    "sarkar-dipankar/gpuemu-corpus (MIT OR Apache-2.0): meta.json fields only; benchmark_verdict is"
    " a declared constant there, never measured"
)


@dataclass(frozen=True, slots=True)
class DeclaredEntry:
    """One upstream entry, as it describes itself."""

    label: str
    source: str
    verdict: str
    dtypes: tuple[str, ...]
    atol: Mapping[str, float]
    candidates: Mapping[str, tuple[int, ...]]

    @property
    def op(self) -> str:
        """The op of the label: 'softmax_llm_buggy' and 'softmax_triton' are both 'softmax'."""
        return self.label.removesuffix("_buggy").removesuffix("_llm").removesuffix("_triton")

    def to_json(self) -> Document:
        """What the index keeps of the entry."""
        return {
            "source": self.source,
            "verdict": self.verdict,
            "dtypes": list(self.dtypes),
            "atol": dict(self.atol),
            "candidates": {name: list(sizes) for name, sizes in self.candidates.items()},
        }


def read_entries(path: Path) -> tuple[str, tuple[DeclaredEntry, ...]]:
    """The source line and the entries of a document, or of upstream's folder of them. Raises
    CorpusError naming what is missing."""
    try:
        document = _from_folder(path) if path.is_dir() else json.loads(path.read_text("utf-8"))
        entries = document["entries"]
        return document["source"], tuple(_entry(label, entries[label]) for label in entries)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorpusError(f"{path}: {type(error).__name__}: {error}") from error


def _from_folder(folder: Path) -> Document:
    """Upstream's data folder as one document: <entry>/meta.json."""
    metas = sorted(folder.glob("*/meta.json"))
    if not metas:
        raise ValueError("no <entry>/meta.json in this folder")
    entries = {meta.parent.name: json.loads(meta.read_text(encoding="utf-8")) for meta in metas}
    return {"source": UPSTREAM, "entries": entries}


def _entry(label: str, fields: Document) -> DeclaredEntry:
    return DeclaredEntry(
        label=label,
        source=fields["source"],
        verdict=fields["benchmark_verdict"],
        dtypes=tuple(fields["dtypes"]),
        atol=fields["tolerances"],
        candidates={d["name"]: tuple(d["candidates"]) for d in fields["op_schema"]["dims"]},
    )


def merged_candidates(entries: Iterable[DeclaredEntry]) -> dict[str, list[int]]:
    """The union of candidates by dim: the entries of one op share a task."""
    merged: dict[str, set[int]] = {}
    for entry in entries:
        for name, sizes in entry.candidates.items():
            merged.setdefault(name, set()).update(sizes)
    return {name: sorted(sizes) for name, sizes in merged.items()}


def import_entries(path: Path, *, root: Path = HERE, write: bool) -> list[str]:
    """Bring tasks and index in line with the document; say what differed.

    With ``write`` false nothing is touched. Raises CorpusError for an entry that the corpus does
    not hold: a kernel and a reference have to be written for it first.
    """
    source, entries = read_entries(path)
    changes = _update_index(root / "kernels" / "p1_replica" / "index.json", source, entries, write)
    for op in sorted({entry.op for entry in entries}):
        same = [entry for entry in entries if entry.op == op]
        changes += _update_task(root / "tasks" / op / "task.json", same, write)
    return changes


def _update_index(
    path: Path, source: str, entries: Iterable[DeclaredEntry], write: bool
) -> list[str]:
    index = _read(path)
    rows = {row["label"]: row for row in index["kernels"]}
    changes = []
    for entry in entries:
        if entry.label not in rows:
            raise CorpusError(f"{entry.label}: no kernel of ours stands for this entry")
        if rows[entry.label]["declared"] != entry.to_json():
            rows[entry.label]["declared"] = entry.to_json()
            changes.append(f"index: {entry.label}")
    if index["source"] != source:
        index["source"] = source
        changes.append("index: source")
    _write(path, index, write and bool(changes))
    return changes


def _update_task(path: Path, entries: Iterable[DeclaredEntry], write: bool) -> list[str]:
    contract = _read(path)
    candidates = merged_candidates(entries)
    changes = []
    for name, sizes in candidates.items():
        dim = contract["dims"][name]
        if dim["candidates"] != sizes:
            dim["candidates"] = sizes
            changes.append(f"{contract['slug']}: candidates of {name}")
    _write(path, contract, write and bool(changes))
    return changes


def _read(path: Path) -> Document:
    try:
        document: Document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: {error}") from error
    return document


def _write(path: Path, document: Document, write: bool) -> None:
    if write:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
