"""`python -m verifier selfcheck`: the control sweep, shown and stored."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from verifier.commands.exit_codes import ExitCode
from verifier.commands.studies import add_study_arguments, origin_since, study_save
from verifier.commands.verify import add_device_arguments
from verifier.records import Environment, GateId, GateStatus, from_json, to_json
from verifier.selfcheck import JUDGED_AS, LIMITS, Trial, find_trials, sweep
from verifier.session import Session, UsageError, printable
from verifier.studies import Control, ControlRow, ControlSweep
from verifier.subject import InfrastructureError

SHARE: Final = "--share"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `selfcheck`."""
    parser.add_argument(
        "--suite-dir",
        type=Path,
        action="append",
        required=True,
        help="a folder with tasks somewhere below it; may be given several times",
    )
    parser.add_argument("--only", default="", help="tasks whose names hold one of these (a,b)")
    parser.add_argument(
        "--controls",
        default=",".join(Control),
        help="what to submit (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=1, help="verifiers side by side (default 1)")
    parser.add_argument(SHARE, default="", help=argparse.SUPPRESS)
    add_study_arguments(parser)
    add_device_arguments(parser)


def run(args: argparse.Namespace) -> ExitCode:
    """Sweep, print the table, store it; exit 1 for any accusation, or a control left unjudged."""
    trials = _trials(args)
    if args.share:
        return _one_share(args, trials)
    started = time.time()
    environment, rows = _all(args, trials)
    origin = origin_since(started, environment, args.seed)
    study = ControlSweep(origin, JUDGED_AS, tuple(rows))
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    study_save(study, args)
    return ExitCode.CLEAN if study.clean else ExitCode.VIOLATIONS


def _trials(args: argparse.Namespace) -> list[Trial]:
    names = [name for name in args.controls.split(",") if name]
    unknown = set(names) - set(Control)
    if unknown or not names:
        raise UsageError(f"unknown controls {sorted(unknown)}; known are {', '.join(Control)}")
    only = [text for text in args.only.split(",") if text]
    trials = find_trials(args.suite_dir, [Control(name) for name in names], only)
    if not trials:
        raise UsageError("no such task below the given folders")
    return trials


def _all(args: argparse.Namespace, trials: Sequence[Trial]) -> tuple[Environment, list[ControlRow]]:
    """Every row in the order of the trials, from this process or from several."""
    if args.workers > 1:
        return _shared_out(args, trials)
    with _session(args) as session:
        rows = list(sweep(session, trials, seed=args.seed, tell=_tell))
        return session.environment, rows


def _session(args: argparse.Namespace, *, sharers: int = 1) -> Session:
    unsafe = args.unsafe_no_sandbox
    return Session(args.device, unsafe=unsafe, limits=LIMITS, sharers=sharers)


def _tell(row: ControlRow) -> None:
    """One line as soon as a control is judged: a sweep takes minutes."""
    marks = " ".join(MARKS[one.status] for one in row.gates) or f"not judged: {row.error}"
    name = f"{row.suite}/{row.task}"
    sys.stderr.write(f"{name:<40} {row.control.value:<8} {marks} {row.duration_s:6.1f} s\n")
    sys.stderr.flush()


MARKS: Final = {
    GateStatus.PASS: "+",
    GateStatus.FAIL: "F",
    GateStatus.NOT_APPLICABLE: "-",
    GateStatus.INCONCLUSIVE: "?",
    GateStatus.ERROR: "!",
}


# --- several verifiers side by side


def _one_share(args: argparse.Namespace, trials: Sequence[Trial]) -> ExitCode:
    """As one of several: this share's rows as JSON lines, behind a line with the environment."""
    number, of = (int(text) for text in args.share.split("/"))
    with _session(args, sharers=of) as session:
        _line(to_json(session.environment))
        for row in sweep(session, trials[number::of], seed=args.seed):
            _line(printable(to_json(row)))
    return ExitCode.CLEAN


def _line(document: object) -> None:
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
    sys.stdout.flush()


def _shared_out(
    args: argparse.Namespace, trials: Sequence[Trial]
) -> tuple[Environment, list[ControlRow]]:
    """The same from ``--workers`` processes. Raises InfrastructureError if one of them fails."""
    count = min(args.workers, len(trials))
    words = [word for word in sys.argv[1:] if not word.startswith(SHARE)]
    lines: SimpleQueue[str | None] = SimpleQueue()
    processes = [_start(words, f"{number}/{count}", lines) for number in range(count)]
    environments: list[Environment] = []
    rows: list[ControlRow] = []
    ended = 0
    while ended < count:
        line = lines.get()
        if line is None:
            ended += 1
        elif '"sandbox"' in line and '"control"' not in line:
            environments.append(from_json(Environment, json.loads(line)))
        else:
            rows.append(from_json(ControlRow, json.loads(line)))
            _tell(rows[-1])
    if any(process.wait() for process in processes) or len(rows) < len(trials):
        raise InfrastructureError("a verifier of the sweep ended early; its message is above")
    place = {(one.suite, one.folder.name, one.control): at for at, one in enumerate(trials)}
    rows.sort(key=lambda row: place[row.suite, row.task, row.control])
    return environments[0], rows


def _start(
    words: Sequence[str], share: str, lines: SimpleQueue[str | None]
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "verifier", *words, SHARE, share]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def forward() -> None:
        assert process.stdout is not None  # noqa: S101 - asked for above
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=forward, daemon=True).start()
    return process


# --- the table


def report_lines(study: ControlSweep) -> Iterator[str]:
    """Counts by gate for each control, then every accusation, then why gates did not apply."""
    environment = study.origin.environment
    yield f"control sweep, gate set {study.origin.gate_set}, {environment.mode.value}"
    yield f"  {environment.device_name}, torch {environment.torch}, triton {environment.triton}"
    yield f"  judged on {study.judged_as}"
    for control in Control:
        if any(row.control is control for row in study.rows):
            yield from _count_lines(study, control)
    yield from _exception_lines(study)
    yield from _reason_lines(study)


def _count_lines(study: ControlSweep, control: Control) -> Iterator[str]:
    tasks = [row for row in study.rows if row.control is control]
    yield ""
    yield f"{control.value}: {sum(row.clean for row in tasks)} of {len(tasks)} tasks clean"
    heads = ("pass", "fail", "n/a", "open", "error")
    yield "      " + "".join(f"{head:>7}" for head in heads)
    for gate, counts in study.counts(control).items():
        yield f"  {gate.value:<4}" + "".join(f"{counts[status]:>7}" for status in _COLUMNS)


_COLUMNS: Final = (
    GateStatus.PASS,
    GateStatus.FAIL,
    GateStatus.NOT_APPLICABLE,
    GateStatus.INCONCLUSIVE,
    GateStatus.ERROR,
)


def _exception_lines(study: ControlSweep) -> Iterator[str]:
    yield ""
    yield f"{len(study.exceptions)} accusations of kernels that are right"
    for row, one in study.exceptions:
        yield f"  {one.gate.value} {one.status.value} {row.suite}/{row.task} {row.control.value}"
        yield f"      {one.reason.splitlines()[0][:200]}"
        yield from (f"      {text}" for text in (one.case,) if text)
    for row in study.unjudged:
        yield f"  not judged: {row.suite}/{row.task} {row.control.value}: {row.error}"


def _reason_lines(study: ControlSweep) -> Iterator[str]:
    yield ""
    yield "why gates did not apply, in how many controls"
    for gate in GateId:
        yield from (
            f"  {gate.value:<4}{count:>5}  {reason[:110]}"
            for reason, count in study.reasons(gate).items()
        )
