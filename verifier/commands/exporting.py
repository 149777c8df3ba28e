"""`python -m verifier export`: a verdict in another benchmark's form."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.exchange import flashinfer
from verifier.records import RecordError, Verdict, from_json
from verifier.session import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One form a target."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="FORM")
    trace = forms.add_parser("flashinfer", help="FlashInfer-Bench traces, one line a workload")
    trace.add_argument("verdict", type=Path, help="a verdict's JSON document")
    trace.add_argument("--task", type=Path, required=True, help="the imported task's folder")
    trace.add_argument("--solution", required=True, help="name of the solution")


def run(args: argparse.Namespace) -> ExitCode:
    """Print the traces."""
    try:
        verdict = from_json(Verdict, json.loads(args.verdict.read_text(encoding="utf-8")))
        definition = json.loads((args.task / flashinfer.DEFINITION_FILE).read_text())["name"]
        lines = (args.task / "workloads.jsonl").read_text().splitlines()
        found = list(
            flashinfer.traces(verdict, list(map(json.loads, lines)), definition, args.solution)
        )
    except (OSError, ValueError, RecordError, flashinfer.FormatError) as error:
        raise UsageError(str(error)) from error
    sys.stdout.writelines(json.dumps(trace, allow_nan=False) + "\n" for trace in found)
    return ExitCode.CLEAN
