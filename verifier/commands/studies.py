"""What the commands share that study the verifier itself: their options, origin and storage."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from verifier.records import Environment
from verifier.studies import Origin, Study, store


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of every study."""
    parser.add_argument("--seed", type=int, default=0, help="master seed (default: 0)")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="OUT",
        help="store the study here, and not where the Verifier page looks (verifier/data)",
    )


def origin_since(started: float, environment: Environment, seed: int) -> Origin:
    """Where a study comes from that began at this time (seconds since the epoch)."""
    made_at = datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds")
    words = shlex.join(_plain(sys.argv[1:]))
    return Origin(
        f".venv/bin/python -m verifier {words}", made_at, time.time() - started, environment, seed
    )


def _plain(words: list[str]) -> list[str]:
    """The words of the command, but for where its output went and where this repository lies."""
    here, kept = f"{Path.cwd()}/", list(words)
    if "--json" in kept:
        at = kept.index("--json")
        del kept[at : at + 2]
    return [word.removeprefix(here) for word in kept]


def study_save(study: Study, args: argparse.Namespace) -> Path:
    """Store a study where the options say, and tell where."""
    path = store(study, args.json)
    sys.stderr.write(f"stored in {path}\n")
    return path
