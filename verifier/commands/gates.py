"""`python -m verifier gates`: the twelve gates."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Final

from verifier.commands.exit_codes import ExitCode
from verifier.pipeline import GATES
from verifier.records import GateInfo, to_json

WIDTH_MAX: Final = 100
"""Longer lines are harder to read, however wide the terminal is."""

EXACT: Final = "exact"
TOLERANT: Final = "within a tolerance"
INTRO: Final = (
    "A kernel is accepted when every gate passes or does not apply to its task. Most cases of an "
    f"'{EXACT}' gate are judged without any tolerance, so that no rounding explains a failure. "
    f"The gates '{TOLERANT}' compare values with the golden ones, which are the task's reference "
    "computed in fp64. A verdict says of each failure whether a tolerance had a part in it. The "
    "contract is what a task says of its inputs, shapes and dtypes."
)
OUTRO: Final = "docs/gates/ says of each gate what it tries, how it judges and what it cannot see."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `gates`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> ExitCode:
    """Print id, name, property and whether a tolerance has a part in it."""
    infos = [gate.info for gate in GATES]
    if args.json:
        sys.stdout.write(json.dumps([to_json(info) for info in infos], indent=1) + "\n")
        return ExitCode.CLEAN
    columns = min(WIDTH_MAX, shutil.get_terminal_size().columns)
    sys.stdout.writelines(f"{line}\n" for line in gate_lines(infos, columns))
    return ExitCode.CLEAN


def gate_lines(infos: list[GateInfo], columns: int) -> Iterator[str]:
    """The list for a reader who never saw it: what its words mean, then two lines a gate."""
    yield from textwrap.wrap(INTRO, columns)
    yield ""
    for info in infos:
        yield f"{info.id.value:>4}  {info.name} ({EXACT if info.tolerance_free else TOLERANT})"
        yield from textwrap.wrap(
            info.property, columns, initial_indent=" " * 6, subsequent_indent=" " * 6
        )
    yield ""
    yield from textwrap.wrap(OUTRO, columns)
