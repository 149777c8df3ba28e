"""`python -m verifier verify`: judge one kernel and say so."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from verifier.commands.exit_codes import ExitCode, exit_code
from verifier.commands.report import report_lines
from verifier.pipeline import TOTAL_S
from verifier.records import Progress, to_json
from verifier.session import Job, Session, parse_gates, printable, progress_line


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that runs kernels."""
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N (default: auto)")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run without isolation where this machine offers none; only for code that you wrote",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `verify`."""
    parser.add_argument(
        "--task", type=Path, required=True, help="folder with task.json, reference.py"
    )
    parser.add_argument(
        "--kernel", type=Path, required=True, help="file that defines the entry point"
    )
    parser.add_argument("--entry", default="run", help="name of the entry point (default: run)")
    parser.add_argument("--seed", type=int, help="master seed (default: a new secret one)")
    parser.add_argument("--gates", help="judge only these, such as G1,G4 (default: all twelve)")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write the verdict here ('-': stdout)"
    )
    parser.add_argument("--events", action="store_true", help="print JSON lines instead of a table")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=TOTAL_S,
        metavar="S",
        help="seconds for all gates together; what is left then stays open (default: %(default)g)",
    )
    parser.add_argument("--no-timing", action="store_true", help="do not time an accepted kernel")
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop at the first failed case of any gate"
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also look into it at work with compute-sanitizer, beside the gates (needs a GPU)",
    )
    add_device_arguments(parser)


def _print_event(progress: Progress) -> None:
    sys.stdout.write(progress_line(progress) + "\n")
    sys.stdout.flush()


def run(args: argparse.Namespace) -> ExitCode:
    """Judge, print, and return the exit code."""
    gates = parse_gates(args.gates.split(",") if args.gates else None)
    job = Job(
        args.task,
        args.kernel,
        args.entry,
        args.seed,
        gates,
        timed=not args.no_timing,
        total_s=args.time_limit,
        fail_fast=args.fail_fast,
        deep=args.deep,
    )
    to_stdout = args.json is not None and str(args.json) == "-"
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        verdict = session.judge(job, _print_event if args.events else lambda progress: None)
    document = json.dumps(printable(to_json(verdict)), indent=1, allow_nan=False)
    if to_stdout:
        sys.stdout.write(document + "\n")
    elif args.json is not None:
        args.json.write_text(document + "\n", encoding="utf-8")
    if not args.events and not to_stdout:
        sys.stdout.writelines(
            f"{line}\n" for line in report_lines(verdict, colour=sys.stdout.isatty())
        )
    return exit_code(verdict)
