"""`python -m verifier fuzz`: draw cases for one kernel from a seed, and replay what failed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.commands.report import DETAIL_WIDTH, one_line
from verifier.commands.verify import add_device_arguments
from verifier.contract import load_task
from verifier.fuzz import (
    FUZZ_VERSION,
    FuzzReport,
    Strategy,
    fuzz,
    judge_afresh,
    with_tolerances,
)
from verifier.pipeline import Candidate, Request, build_bench
from verifier.records import (
    Counterexample,
    KernelRef,
    RecordError,
    TaskRef,
    from_json,
    to_json,
)
from verifier.referee.bench import Bench
from verifier.referee.generator import GENERATOR_VERSION
from verifier.session import (
    Job,
    Session,
    UsageError,
    make_request,
    printable,
    read_kernel,
    source_of,
)
from verifier.source import read_source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fuzz`."""
    parser.add_argument(
        "--task", type=Path, required=True, help="folder with task.json, reference.py"
    )
    parser.add_argument("--kernel", type=Path, help="file that defines the entry point")
    parser.add_argument("--entry", default="run", help="name of the entry point (default: run)")
    parser.add_argument("--seed", type=int, default=0, help="master seed (default: 0)")
    parser.add_argument("--iterations", type=int, default=100, help="cases to draw (default: 100)")
    parser.add_argument(
        "--strategy",
        type=Strategy,
        choices=tuple(Strategy),
        default=Strategy.MIXED,
        help="where cases come from (default: mixed)",
    )
    parser.add_argument(
        "--tolerances",
        type=Path,
        metavar="FILE",
        help="absolute tolerances by task and dtype, as `calibrate` writes them "
        "(default: twice eager's error)",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the report here")
    parser.add_argument(
        "--replay", type=Path, metavar="REPORT", help="re-create the failures of a report instead"
    )
    add_device_arguments(parser)


def read_tolerances(path: Path | None, slug: str) -> dict[str, float]:
    """The absolute tolerances of one task by dtype. Raises UsageError when it has none."""
    if path is None:
        return {}
    try:
        document: Mapping[str, Mapping[str, float]] = json.loads(path.read_text(encoding="utf-8"))
        return {dtype: float(atol) for dtype, atol in document["tolerances"][slug].items()}  # type: ignore[attr-defined]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: no tolerances for {slug!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Target:
    """One kernel, loaded, with its bench."""

    session: Session
    request: Request
    bench: Bench
    candidate: Candidate


def _open(
    session: Session, task: Path, source: bytes, entry: str, seed: int, atol: Mapping[str, float]
) -> _Target:
    facts = read_source(source)
    if facts.problem:
        raise UsageError(facts.problem)
    request = make_request(Job(task, Path(), entry, seed), facts)
    if atol:
        request = replace(request, task=with_tolerances(request.task, atol))
    bench = build_bench(request, session.mode, session.device)
    candidate = session.sandbox.load(source=source, **request.choice.options())
    return _Target(session, request, bench, candidate)


def _report(target: _Target, args: argparse.Namespace, atol: Mapping[str, float]) -> FuzzReport:
    tally = fuzz(
        target.bench,
        target.candidate,
        seed=args.seed,
        iterations=args.iterations,
        strategy=args.strategy,
    )
    request = target.request
    facts, contract = request.facts, request.task.contract
    return FuzzReport(
        task=TaskRef(contract.slug, request.task.digest),
        kernel=KernelRef(
            facts.sha256,
            request.choice.entry,
            facts.language,
            facts.text,
            request.choice.convention,
        ),
        environment=target.session.environment,
        seed=args.seed,
        strategy=args.strategy,
        iterations=args.iterations,
        passed=tally.passed,
        failed=tally.failed,
        notes=tally.notes,
        failures=tuple(tally.failures),
        tolerances=dict(atol),
    )


def _lines(report: FuzzReport) -> Iterable[str]:
    """The report for people."""
    yield (
        f"{report.failed} of {report.iterations} cases failed, {report.passed} passed "
        f"(strategy {report.strategy}, seed {report.seed})"
    )
    for note in report.notes:
        yield f"  {note.count} {note.status.value}: {one_line(note.reason, DETAIL_WIDTH)}"
    for example in report.failures:
        dims = ", ".join(f"{name}={size}" for name, size in example.case.dims.items())
        kinds = ", ".join(example.case.dtypes.values())
        detail = one_line(example.detail, DETAIL_WIDTH)
        yield f"  {example.case.label}: {dims} {kinds}: {detail}"
        for call in example.calls:
            yield f"    inputs {call.inputs[:16]} outputs {call.outputs[:16] or '(none)'}"
    if unlisted := report.failed - len(report.failures):
        yield f"  and {unlisted} more failed, which are counted and not listed"


def _fuzz(args: argparse.Namespace) -> ExitCode:
    if args.kernel is None:
        raise UsageError("--kernel names the file to fuzz")
    if args.iterations < 1:
        raise UsageError("--iterations is at least 1")
    source = read_kernel(args.kernel)
    atol = read_tolerances(args.tolerances, load_task(args.task).contract.slug)
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        target = _open(session, args.task, source, args.entry, args.seed, atol)
        try:
            report = _report(target, args, atol)
        finally:
            target.candidate.close()
    sys.stdout.writelines(f"{line}\n" for line in _lines(report))
    if args.json is not None:
        document = json.dumps(printable(to_json(report)), indent=1, allow_nan=False)
        args.json.write_text(document + "\n", encoding="utf-8")
    return ExitCode.VIOLATIONS if report.failed else ExitCode.CLEAN


def read_report(path: Path) -> FuzzReport:
    """The report in a file. Raises UsageError saying why it is none, or cannot be replayed."""
    try:
        report = from_json(FuzzReport, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordError) as error:
        raise UsageError(f"{path}: no fuzz report: {error}") from error
    theirs, ours = (
        (report.fuzz_version, report.generator_version),
        (FUZZ_VERSION, GENERATOR_VERSION),
    )
    if theirs != ours:
        raise UsageError(
            f"{path}: drawn by versions {theirs} of fuzzing and generator, here they are {ours}"
        )
    return report


def _replay(args: argparse.Namespace) -> ExitCode:
    report = read_report(args.replay)
    source = source_of(report.kernel)
    exact = True
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        target = _open(
            session, args.task, source, report.kernel.entry, report.seed, report.tolerances
        )
        if target.request.task.digest != report.task.digest:
            raise UsageError(f"{args.task} is not the task of this report (digests differ)")
        try:
            for example in report.failures:
                exact &= _replay_one(target, example)
        finally:
            target.candidate.close()
    return ExitCode.CLEAN if exact else ExitCode.VIOLATIONS


def _replay_one(target: _Target, example: Counterexample) -> bool:
    finding, calls = judge_afresh(target.bench, example.case, target.candidate)
    same = calls == example.calls
    again = "fails again" if finding.failed else "does NOT fail again"
    digests = "match" if same else "DIFFER"
    detail = one_line(finding.detail, DETAIL_WIDTH)
    sys.stdout.write(f"{example.case.label}: {again}; digests {digests}  {detail}\n")
    return finding.failed and same


def run(args: argparse.Namespace) -> ExitCode:
    """Exit 0 when no case failed (with --replay: when all came back byte for byte), else 1."""
    return _fuzz(args) if args.replay is None else _replay(args)
