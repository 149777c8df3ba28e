"""`python -m verifier gates`: the twelve gates."""

from __future__ import annotations

import argparse
import json
import sys

from verifier.commands.exit_codes import ExitCode
from verifier.pipeline import GATES
from verifier.records import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `gates`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> ExitCode:
    """Print id, name, property and whether a tolerance has a part in it."""
    infos = [gate.info for gate in GATES]
    if args.json:
        sys.stdout.write(json.dumps([to_json(info) for info in infos], indent=1) + "\n")
        return ExitCode.CLEAN
    for info in infos:
        exact = "tolerance-free" if info.tolerance_free else "comparator"
        sys.stdout.write(f"{info.id.value:>4}  {info.name:<24} {exact:<15} {info.property}\n")
    return ExitCode.CLEAN
