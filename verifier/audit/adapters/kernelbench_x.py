"""KernelBench-X: the corpus of its repair rounds, each record a kernel before and after.

A checkout holds ``data/kbx_corpus/all_records.jsonl`` and, a file a task,
``data/kernelbenchx/<Category>/<task>.py`` (the reference, a line of 146 #, the test).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from verifier.audit.adapters.tritonbench import halves
from verifier.audit.corpus import Content, Corpus, CorpusError, CorpusKernel
from verifier.audit.deriving import Definition, Derived, derive_all
from verifier.audit.predictions import as_called, code_of, without_duplicates

ABOUT: Final = "checkout of BonnieW05/KernelBenchX: data/kbx_corpus/ and data/kernelbenchx/"
CORPUS: Final = "KernelBench-X"


def read(root: Path) -> Corpus:
    """The corpus in a checkout. Raises CorpusError where it is none."""
    path = root / "data" / "kbx_corpus" / "all_records.jsonl"
    if not path.is_file():
        raise CorpusError(f"{path}: not there, though KernelBench-X has it")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    files = sorted({str(row["task_id"]) for row in rows})
    tasks_of = root / "data" / "kernelbenchx"
    # Some records are of tasks that have left the benchmark since.
    derived = derive_all(_definition(root, file) for file in files if (tasks_of / file).is_file())
    kernels = [_kernel(kernel, derived) for kernel in _texts(rows)]
    tasks = {name: one.task for name, one in derived.items() if one.task is not None}
    return Corpus(tasks, tuple(without_duplicates(kernels)))


def _name(file: str) -> str:
    return f"kernelbench-x-{Path(file).stem.lower().strip('_').replace('_', '-')}"


def _definition(root: Path, file: str) -> Definition:
    code, test = halves(root / "data" / "kernelbenchx" / file)
    stem, category = Path(file).stem, Path(file).parent.name
    helpers = root / "utils" / "data_utils.py"
    return Definition(
        name=_name(file),
        title=stem.replace("_", " "),
        category=category,
        code=code,
        test=test,
        stem=stem,
        helpers={helpers.stem: helpers.read_text(encoding="utf-8")} if helpers.exists() else {},
    )


def _texts(rows: list[dict[str, Any]]) -> Iterator[CorpusKernel]:
    for number, row in enumerate(rows, start=1):
        for when in ("before", "after"):
            if not row.get(f"{when}_code"):
                continue
            file = str(row["task_id"])
            yield CorpusKernel(
                key=f"kernelbench-x/{number}-{when}/{file}",
                corpus=CORPUS,
                author=str(row[f"{'from' if when == 'before' else 'to'}_round"]),
                task=_name(file),
                category=Path(file).parent.name,
                content=Content.NOTHING,
                origin=f"data/kbx_corpus/all_records.jsonl:{number}",
                sha256="",
                source=code_of(str(row[f"{when}_code"])),
                claims={"accepted": str(bool(row[when].get("exe_ok"))).lower()},
            )


def _kernel(kernel: CorpusKernel, derived: dict[str, Derived]) -> CorpusKernel:
    return as_called(
        kernel,
        derived.get(kernel.task, Derived(kernel.task, problem="not in the benchmark any more")),
    )
