"""`kernelhub audit`: the verifier's audit, and then, if wanted, its results in the hub.

The judging runs as ``python -m verifier audit`` (no torch in this process) and needs no hub.
``--record SLUG`` writes the results into the hub's database afterwards, as a campaign of that name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REPO: Final = Path(__file__).resolve().parents[1]


def run(words: Sequence[str]) -> int:
    """Audit, then record; gives the exit code of what failed first."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--record", metavar="SLUG")
    options, rest = parser.parse_known_args(words)
    judged = _python("-m", "verifier", "audit", *rest)
    if judged or options.record is None:
        return judged
    corpus, adapter, out = _audited(rest)
    pack = corpus if corpus.is_file() else out / "corpus.jsonl.gz"
    if pack != corpus:
        packed = _python(
            "-m", "verifier", "audit", str(corpus), "--adapter", adapter, "--pack", str(pack)
        )
        if packed:
            return packed
    results = str(out / "results.jsonl")
    return _python(
        "manage.py", "record_audit", str(pack), results, "--campaign", options.record, cwd=REPO
    )


def _audited(words: Sequence[str]) -> tuple[Path, str, Path]:
    """Corpus, adapter and results folder among the verifier's words."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--adapter", default="")
    parser.add_argument("--out", type=Path, default=Path("audit"))
    found, _ = parser.parse_known_args(words)
    return found.corpus.resolve(), found.adapter, found.out.resolve()


def _python(*words: str, cwd: Path | None = None) -> int:
    return subprocess.run([sys.executable, *words], cwd=cwd).returncode
