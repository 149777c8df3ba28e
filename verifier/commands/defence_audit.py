"""`python -m verifier defend audit`: export a sample for two readers, import what they said."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.commands.studies import add_study_arguments, origin_since, study_save
from verifier.defences import audit
from verifier.records import Environment, GateStatus, Verdict, from_json, to_json
from verifier.session import UsageError
from verifier.studies import HandAudit

ENVIRONMENT = "environment.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two steps: `export`, then, when both have read, `import`."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    out = steps.add_parser("export", help="draw a sample from verdicts into a folder")
    out.add_argument("verdicts", type=Path, nargs="+", help="verdict files (.json, or .jsonl)")
    out.add_argument("--out", type=Path, required=True, help="a new folder for the sample")
    out.add_argument(
        "--suite-dir", type=Path, action="append", default=[], help="tasks, for their op classes"
    )
    out.add_argument("--per-stratum", type=int, default=audit.PER_STRATUM)
    out.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    back = steps.add_parser("import", help="join the readers' tables and count")
    back.add_argument("sample", type=Path, help="the exported folder")
    back.add_argument(
        "--reader",
        action="append",
        required=True,
        metavar="NAME=TABLE",
        help="a reader and the table that they filled in; given twice",
    )
    add_study_arguments(back)


def run(args: argparse.Namespace) -> ExitCode:
    """Export or import."""
    return _export(args) if args.step == "export" else _import(args)


def _export(args: argparse.Namespace) -> ExitCode:
    verdicts = list(audit.read_verdicts(args.verdicts))
    if not verdicts:
        raise UsageError("no verdict in these files")
    if args.per_stratum < 1:
        raise UsageError("--per-stratum is at least 1")
    found = audit.findings(verdicts, audit.read_classes(args.suite_dir))
    drawn, population = audit.sample(found, seed=args.seed, per_stratum=args.per_stratum)
    audit.export(drawn, population, args.out)
    (args.out / ENVIRONMENT).write_text(_environment_text(verdicts), encoding="utf-8")
    sys.stdout.write(
        f"{len(drawn)} findings of {sum(population.values())}, from {len(population)} strata, are "
        f"in {args.out}: give each reader a copy of {audit.TABLE}\n"
    )
    return ExitCode.CLEAN


def _environment_text(verdicts: list[Verdict]) -> str:
    """Where the verdicts were reached. Raises UsageError when that is not one device mode."""
    modes = {verdict.environment.mode for verdict in verdicts}
    if len(modes) > 1:
        raise UsageError("verdicts of different device modes; sample each by itself")
    return json.dumps(to_json(verdicts[0].environment), indent=1) + "\n"


def _import(args: argparse.Namespace) -> ExitCode:
    started = time.time()
    items, population = audit.read_sample(args.sample)
    tables = dict(_reader(text) for text in args.reader)
    said = {name: audit.read_judgements(path) for name, path in tables.items()}
    origin = origin_since(started, _environment(args.sample / ENVIRONMENT), args.seed)
    study = HandAudit(origin, tuple(tables), population, audit.join(items, said))
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    study_save(study, args)
    return ExitCode.CLEAN


def _reader(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise UsageError(f"--reader {text!r}: write NAME=TABLE")
    return name, Path(path)


def _environment(path: Path) -> Environment:
    try:
        return from_json(Environment, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error


def report_lines(study: HandAudit) -> Iterator[str]:
    """The error rate with its interval, in all and by verdict, and how far the readers agree."""
    yield f"{len(study.items)} findings, readers {' and '.join(study.readers)}"
    yield f"  judged by all, and nobody unsure: {len(study.settled)}"
    yield f"  wrong verdicts: {study.errors.text}"
    for verdict, share in study.errors_by_verdict().items():
        yield f"    {_meaning(verdict)}: {share.text}"
    agreement = study.agreement
    if agreement.kappa is not None and agreement.low is not None and agreement.high is not None:
        yield (
            f"  readers agree on {agreement.agreed} of {agreement.n}, kappa "
            f"{agreement.kappa:.3f} (95% {agreement.low:.3f} to {agreement.high:.3f})"
        )
    elif agreement.n:
        yield f"  readers agree on {agreement.agreed} of {agreement.n}; kappa says nothing here"
    yield from (f"  disputed: {item.id} {dict(item.judgements)}" for item in study.disputed)


def _meaning(verdict: GateStatus) -> str:
    words = {GateStatus.FAIL: "of FAIL (false accusations)", GateStatus.PASS: "of PASS (escapes)"}
    return words.get(verdict, f"of {verdict.value}")
