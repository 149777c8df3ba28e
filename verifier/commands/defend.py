"""`python -m verifier defend`: the four defences, each a command of its own."""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from verifier.commands.exit_codes import ExitCode

DEFENCES: Final = {
    "positive": "1: seven planted violators, one for each hard family, and their twins",
    "thresholds": "2: what other soft tolerances would reject, and whom they would accuse",
    "agreement": "3: our KernelBench test beside KernelBench's own code (needs a GPU)",
    "audit": "4: a stratified sample of findings for two readers, and what they said",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One command for each defence."""
    commands = parser.add_subparsers(dest="defence", required=True, metavar="DEFENCE")
    for name, text in DEFENCES.items():
        sub = commands.add_parser(name, help=text, description=text)
        module = importlib.import_module(f"verifier.commands.defence_{name}")
        module.add_arguments(sub)
        sub.set_defaults(defend=module.run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the chosen defence."""
    code: ExitCode = args.defend(args)
    return code
