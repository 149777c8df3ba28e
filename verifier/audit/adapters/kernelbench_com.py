"""kernelbench.com: runs of agents on a few hard problems, some of them audited by people.

A checkout holds ``public/runs/**/<run>_solution.py.txt``; a run's name ends in its problem's, and
the problem's reference is ``benchmarks/<bench>/problems-<gpu>/<problem>/reference.py``. A person's
verdict, where there is one, is in ``benchmarks/*/results/annotations/<run>.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from verifier.audit.corpus import Corpus, CorpusError
from verifier.audit.modules import Solution, corpus_of

ABOUT: Final = "checkout of Infatoshi/kernelbench.com: public/runs/ and benchmarks/"
CORPUS: Final = "kernelbench.com"

_RUN: Final = re.compile(r"\d+_\d+_(?P<model>.+)_(?P<problem>\d\d_[a-z0-9_]+)_solution\.py\.txt")
_VERDICT: Final = re.compile(r"^verdict:\s*(\S+)", re.MULTILINE)
_DEFAULT_GPU: Final = "rtxpro6000"


def read(root: Path) -> Corpus:
    """The corpus in a checkout. Raises CorpusError where it is none."""
    files = sorted((root / "public" / "runs").glob("**/*_solution.py.txt"))
    if not files:
        raise CorpusError(f"{root}: no public/runs/**/*_solution.py.txt, as kernelbench.com has")
    return corpus_of(CORPUS, _solutions(root, files))


def _solutions(root: Path, files: list[Path]) -> Iterator[Solution]:
    verdicts = {
        path.stem: found[1]
        for path in root.glob("benchmarks/*/results/annotations/*.yaml")
        if (found := _VERDICT.search(path.read_text(encoding="utf-8")))
    }
    for path in files:
        found = _RUN.fullmatch(path.name)
        if found is None:
            continue
        gpu = path.parent.name if path.parent.name != "runs" else _DEFAULT_GPU
        verdict = verdicts.get(path.name.removesuffix("_solution.py.txt"))
        yield Solution(
            key=f"kernelbench-com/{gpu}/{path.name.removesuffix('_solution.py.txt')}",
            origin=str(path.relative_to(root)),
            author=found["model"],
            category=found["problem"],
            problem_name=f"kernelbench-com-{found['problem'].replace('_', '-')}",
            problem=_reference(root, found["problem"], gpu),
            source=path.read_text(encoding="utf-8", errors="replace"),
            claims={"human verdict": verdict} if verdict else {},
        )


def _reference(root: Path, problem: str, gpu: str) -> str:
    """The problem's text for that GPU, or for another one; '' where it is no longer there."""
    exact = sorted(root.glob(f"benchmarks/*/problems*{gpu}/{problem}/reference.py"))
    others = sorted(root.glob(f"benchmarks/*/problems*/{problem}/reference.py"))
    paths = exact or others
    return paths[0].read_text(encoding="utf-8") if paths else ""
