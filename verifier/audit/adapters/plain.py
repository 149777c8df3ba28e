"""A folder of your own: task folders, each with a folder ``kernels/`` of files to judge.

``task.json`` and ``reference.py`` as docs/contract.md describes them; a kernel is a .py file with
``def run``, or a .cu file. The folder itself may be such a task, or any number of folders below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from verifier.audit.corpus import (
    Content,
    Corpus,
    CorpusError,
    CorpusKernel,
    CorpusTask,
    content_of,
    sha256_of,
)
from verifier.audit.predictions import refused, without_duplicates
from verifier.contract import Task, TaskError, load_task

ABOUT: Final = "folder of tasks (task.json, reference.py), each with kernels/*.py or *.cu"
CORPUS: Final = "plain"


def read(root: Path) -> Corpus:
    """The corpus below a folder. Raises CorpusError without a task, or for a task that is none."""
    folders = sorted(path.parent for path in root.rglob("task.json"))
    if not folders:
        raise CorpusError(f"{root}: no task.json in it or below")
    tasks: dict[str, CorpusTask] = {}
    kernels: list[CorpusKernel] = []
    for folder in folders:
        task = _task(folder)
        name = folder.relative_to(root).as_posix() if folder != root else task.contract.slug
        contract = (folder / "task.json").read_text(encoding="utf-8")
        tasks[name] = CorpusTask(name, contract, task.reference_source)
        kernels += _kernels(root, folder, name, task)
    return Corpus(tasks, tuple(without_duplicates(kernels)))


def _task(folder: Path) -> Task:
    try:
        return load_task(folder)
    except TaskError as error:
        raise CorpusError(str(error)) from error


def _kernels(root: Path, folder: Path, name: str, task: Task) -> Iterator[CorpusKernel]:
    for path in sorted((folder / "kernels").glob("*")):
        if path.suffix not in {".py", ".cu"}:
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        content = content_of(source, cuda=path.suffix == ".cu")
        kernel = CorpusKernel(
            key=path.relative_to(root).as_posix(),
            corpus=CORPUS,
            author=root.name,
            task=name,
            category=task.contract.category,
            content=content,
            origin=path.relative_to(root).as_posix(),
            sha256=sha256_of(source),
            source=source,
        )
        yield kernel if content is not Content.NOTHING else refused(kernel, "no code")
