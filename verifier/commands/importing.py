"""`python -m verifier import`: tasks of other benchmarks become task folders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.exchange import flashinfer, kernelbench
from verifier.exchange.probe import ProblemError
from verifier.session import UsageError

AUTO = {"auto": None, "yes": True, "no": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One form a source."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="FORM")
    bench = forms.add_parser("kernelbench", help="a KernelBench problem, or a folder of them")
    bench.add_argument("source", type=Path, help="a problem's .py file, or a folder")
    bench.add_argument("--out", type=Path, required=True, help="folder for the task folders")
    default = kernelbench.Options()
    bench.add_argument("--seed", type=int, default=default.seed, help="seed of the weights")
    bench.add_argument(
        "--elements",
        type=int,
        default=default.elements,
        help="greatest tensor of the scaled task (default: %(default)s)",
    )
    bench.add_argument(
        "--flops", type=int, default=default.flops, help="of one forward pass of the scaled task"
    )
    bench.add_argument(
        "--library-calls",
        choices=AUTO,
        default="auto",
        help="whether library calls are a fair answer (auto: where the problem composes several)",
    )
    trace = forms.add_parser("flashinfer", help="a FlashInfer-Bench definition with its workloads")
    trace.add_argument("source", type=Path, help="the definition's .json file")
    trace.add_argument("--out", type=Path, required=True, help="folder for the task folder")
    trace.add_argument("--workloads", type=Path, help="JSON lines of its workloads")
    trace.add_argument("--solution", type=Path, help="a solution's .json file, to get its kernel")


def run(args: argparse.Namespace) -> ExitCode:
    """Import, say what was made, and return the exit code."""
    if not args.source.exists():
        raise UsageError(f"{args.source}: there is no such file or folder")
    return _kernelbench(args) if args.form == "kernelbench" else _flashinfer(args)


def _kernelbench(args: argparse.Namespace) -> ExitCode:
    options = kernelbench.Options(args.seed, args.elements, args.flops, AUTO[args.library_calls])
    refused = 0
    for path, found in _problems(args.source, options):
        if isinstance(found, ProblemError):
            refused += 1
            sys.stderr.write(f"{path}: {found}\n")
            continue
        for task in found:
            sizes = ", ".join(f"{name} {a} -> {b}" for name, (a, b) in task.sizes.items())
            sys.stdout.write(f"{task.write(args.out)}" + (f" ({sizes})" if sizes else "") + "\n")
    return ExitCode.USAGE if refused else ExitCode.CLEAN


def _problems(source: Path, options: kernelbench.Options) -> kernelbench.Found:
    if source.is_dir():
        yield from kernelbench.import_folder(source, options)
        return
    try:
        yield source, kernelbench.import_file(source, options)
    except ProblemError as error:
        yield source, error


def _flashinfer(args: argparse.Namespace) -> ExitCode:
    try:
        task = flashinfer.import_files(args.source, args.workloads, args.solution)
    except flashinfer.FormatError as error:
        raise UsageError(str(error)) from error
    for path in task.write(args.out):
        sys.stdout.write(f"{path}\n")
    return ExitCode.CLEAN
