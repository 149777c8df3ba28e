"""KernelBench-style folders: problems and, somewhere beside them, solutions.

Three layouts are known: runs of KernelBench itself (``level_1_problem_2_sample_0_kernel.py`` files
and ``level1/2_Name.py`` problems, both anywhere below the folder), the KernelBench leaderboard
(``docs/assets/data.json`` with problems/ and solutions/) and METR's filtered set
(``best_agent_solutions/level_1/task_2.py`` and ``tasks/level_1/2_Name.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from verifier.audit.corpus import Corpus, CorpusError
from verifier.audit.modules import Solution, corpus_of

ABOUT: Final = "folder with KernelBench problems and solutions (runs, leaderboard or METR's layout)"

_SAMPLE: Final = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_HEADING: Final = re.compile(r"Level (\d+): (\d+)_")
_AGENT: Final = re.compile(r"agent name: (.+?)(?: speedup|$)", re.MULTILINE)


def read(root: Path) -> Corpus:
    """The corpus below a folder. Raises CorpusError where no layout fits."""
    for name, layout in (
        ("KernelBench leaderboard", _leaderboard),
        ("KernelBench filtered", _filtered),
        ("KernelBench runs", _runs),
    ):
        solutions = list(layout(root))
        if solutions:
            return corpus_of(name, solutions)
    raise CorpusError(f"{root}: no solutions in any layout that is known for KernelBench")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _leaderboard(root: Path) -> Iterator[Solution]:
    assets = root / "docs" / "assets"
    if not (assets / "data.json").is_file():
        return
    for heading, rows in json.loads(_text(assets / "data.json")).items():
        found = _HEADING.match(heading)
        if found is None:
            continue
        level, number = found.groups()
        problem = _text(assets / "problems" / f"l{level}_p{number}.py")
        for row in rows:
            path = assets / "solutions" / f"{row['file']}.py"
            yield _solution(root, path, level, number, problem, row["display_name"])


def _filtered(root: Path) -> Iterator[Solution]:
    for path in sorted((root / "best_agent_solutions").glob("level_*/task_*.py")):
        level, number = path.parent.name.rpartition("_")[2], path.stem.rpartition("_")[2]
        problem = next((root / "tasks" / path.parent.name).glob(f"{number}_*.py"), None)
        if problem is not None:
            agent = _AGENT.search(_text(path).partition("\n")[0])
            author = agent[1].strip() if agent else "unnamed agent"
            yield _solution(root, path, level, number, _text(problem), author)


def _runs(root: Path) -> Iterator[Solution]:
    problems = {
        (found[1], path.name.partition("_")[0]): path
        for path in sorted(root.rglob("*.py"))
        if (found := re.fullmatch(r"level_?(\d+)", path.parent.name)) and path.name[0].isdigit()
    }
    for path in sorted(root.rglob("*_kernel.py")):
        found = _SAMPLE.fullmatch(path.name)
        if found and (found[1], found[2]) in problems:
            problem = _text(problems[found[1], found[2]])
            yield _solution(root, path, found[1], found[2], problem, path.parent.name)


def _solution(
    root: Path, path: Path, level: str, number: str, problem: str, author: str
) -> Solution:
    origin = str(path.relative_to(root))
    return Solution(
        key=f"kernelbench/{author}/{origin}",
        origin=origin,
        author=author,
        category=f"KernelBench level {level}",
        problem_name=f"kernelbench-l{level}-p{number}",
        problem=problem,
        source=_text(path),
    )
