"""CUDA-L1: one JSON lines file a GPU, each line a KernelBench problem and what was made of it.

Many a text is published for several GPUs; it is judged once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from verifier.audit.corpus import Corpus, CorpusError
from verifier.audit.modules import Solution, corpus_of

ABOUT: Final = "checkout of deepreinforce-ai/CUDA-L1: optimized_cuda_code/<gpu>.json"
CORPUS: Final = "CUDA-L1"


def read(root: Path) -> Corpus:
    """The corpus in a checkout. Raises CorpusError where it is none."""
    files = sorted((root / "optimized_cuda_code").glob("*.json"))
    if not files:
        raise CorpusError(f"{root}: no optimized_cuda_code/<gpu>.json, as CUDA-L1 has them")
    return corpus_of(CORPUS, (one for path in files for one in _solutions(root, path)))


def _solutions(root: Path, path: Path) -> Iterator[Solution]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = _row(path, number, line)
        level, task = row["level_id"], row["task_id"]
        if not str(row.get("custom_code") or "").strip():
            continue  # nothing was published for this GPU
        yield Solution(
            key=f"cuda-l1/{path.stem}/l{level}-p{task}",
            origin=f"{path.relative_to(root)}:{number}",
            author=f"CUDA-L1 {path.stem}",
            category=f"KernelBench level {level}",
            problem_name=f"kernelbench-l{level}-p{task}",
            problem=str(row["ref_code"]),
            source=str(row["custom_code"]),
            claims={"speedup": str(row.get("score_default"))},
        )


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        if {"level_id", "task_id", "ref_code"} <= row.keys():
            return dict(row)
    except (ValueError, AttributeError):
        pass
    raise CorpusError(f"{path}, line {number}: no level_id, task_id and ref_code") from None
