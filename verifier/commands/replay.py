"""`python -m verifier replay VERDICT.json`: re-create a failure from its seed, byte for byte.

The kernel's source rides in the verdict and runs in the sandbox. The task does not: its reference
is trusted code, so it is taken from a folder of this machine whose digest the verdict names.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.commands.report import DETAIL_WIDTH, one_line
from verifier.commands.verify import add_device_arguments
from verifier.contract import Task, TaskError, load_task
from verifier.gate import Finding
from verifier.gradients import BACKWARD, backward_choice
from verifier.pipeline import BACKWARD_GATES, GATES, build_backward, build_bench
from verifier.recorder import Bar
from verifier.records import (
    CallDigest,
    Counterexample,
    GateId,
    GateResult,
    RecordError,
    Verdict,
    from_json,
)
from verifier.session import Job, Session, UsageError, make_request, parse_gates, source_of
from verifier.source import read_source

REPOSITORY = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `replay`."""
    parser.add_argument(
        "verdict", type=Path, help="a verdict written by verify --json or downloaded"
    )
    parser.add_argument(
        "--gate", help="only this gate, such as G10 or 10 (default: each that failed)"
    )
    parser.add_argument("--task", type=Path, help="task folder (default: found by its digest)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_device_arguments(parser)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of replaying one gate's counterexample."""

    gate: GateId
    failed_again: bool
    inputs_match: bool
    outputs_match: bool
    detail: str

    @property
    def exact(self) -> bool:
        return self.failed_again and self.inputs_match and self.outputs_match


def read_verdict(path: Path) -> Verdict:
    """The verdict in a file. Raises UsageError saying why it is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    try:
        return from_json(Verdict, document)
    except RecordError as error:
        raise UsageError(f"{path}: no verdict of this version: {error}") from error


def find_task(verdict: Verdict, folder: Path | None) -> Task:
    """The task of a verdict, by digest. Raises UsageError when this machine does not have it."""
    known = (path.parent for path in sorted(REPOSITORY.glob("*/*/tasks/*/task.json")))
    candidates = [folder] if folder else known
    for place in candidates:
        try:
            task = load_task(place)
        except TaskError:
            if folder:
                raise
            continue
        if task.digest == verdict.task.digest:
            return task
    where = str(folder) if folder else "the suites of this checkout"
    raise UsageError(
        f"task {verdict.task.name!r} with digest {verdict.task.digest[:12]} is not in {where}; "
        "name its folder with --task"
    )


def _same(left: tuple[CallDigest, ...], right: tuple[CallDigest, ...], field: str) -> bool:
    return [getattr(c, field) for c in left] == [getattr(c, field) for c in right]


def _selected(verdict: Verdict, gate: str | None) -> list[GateResult]:
    wanted = parse_gates([gate]) if gate else tuple(GateId)
    failed = [r for r in verdict.gates if r.counterexample is not None and r.gate in wanted]
    if not failed:
        raise UsageError("nothing to replay: " + ("that gate" if gate else "no gate") + " failed")
    return failed


def replay_all(
    verdict: Verdict, task: Task, results: list[GateResult], session: Session
) -> list[Replayed]:
    """Replay the counterexample of each result."""
    source = source_of(verdict.kernel)
    facts = read_source(source)
    request = make_request(Job(task.folder, Path(), verdict.kernel.entry, verdict.seed), facts)
    bench = build_bench(request, session.mode, session.device)
    derived = build_backward(bench)
    candidate = session.sandbox.load(source=source, **request.choice.options())
    bar = Bar(bench, GATES)
    choice = backward_choice(request.choice, task.contract) if derived else request.choice
    differentiated = session.sandbox.load(source=source, **choice.options())
    backward = Bar(derived, BACKWARD_GATES) if derived else bar
    outcomes = []
    try:
        for result in results:
            example = result.counterexample
            assert example is not None  # noqa: S101 - _selected saw to it
            back = BACKWARD in example.case.params
            here, subject = (backward, differentiated) if back else (bar, candidate)
            gate = here.gate(result.gate)
            try:
                found = here.judge_afresh(gate, example.case, subject)
            except (ValueError, LookupError, TypeError, OverflowError) as error:
                name = result.gate.value
                raise UsageError(f"the case of {name} is none of ours: {error!r}") from error
            outcomes.append(_replayed(result.gate, example, *found))
    finally:
        candidate.close()
        differentiated.close()
    return outcomes


def _replayed(
    gate: GateId, example: Counterexample, finding: Finding, calls: tuple[CallDigest, ...]
) -> Replayed:
    return Replayed(
        gate,
        finding.failed,
        _same(calls, example.calls, "inputs"),
        _same(calls, example.calls, "outputs"),
        finding.detail,
    )


def _line(outcome: Replayed) -> str:
    again = "fails again" if outcome.failed_again else "does NOT fail again"
    inputs = "match" if outcome.inputs_match else "DIFFER"
    outputs = "match" if outcome.outputs_match else "DIFFER"
    return (
        f"{outcome.gate.value:>4}  {again}; input digests {inputs}, output digests {outputs}"
        f"  {one_line(outcome.detail, DETAIL_WIDTH)}"
    )


def run(args: argparse.Namespace) -> ExitCode:
    """Exit 0 when every failure was re-created with the same bytes, 1 when one was not."""
    verdict = read_verdict(args.verdict)
    task = find_task(verdict, args.task)
    results = _selected(verdict, args.gate)
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        if session.mode is not verdict.environment.mode:
            sys.stderr.write(
                f"note: the verdict was reached in mode {verdict.environment.mode.value}, "
                f"this is {session.mode.value}: outputs may differ\n"
            )
        outcomes = replay_all(verdict, task, results, session)
    if args.json:
        rows = [
            {
                "gate": o.gate.value,
                "failed_again": o.failed_again,
                "inputs_match": o.inputs_match,
                "outputs_match": o.outputs_match,
                "detail": o.detail,
            }
            for o in outcomes
        ]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
    else:
        sys.stdout.writelines(f"{_line(outcome)}\n" for outcome in outcomes)
    return ExitCode.CLEAN if all(o.exact for o in outcomes) else ExitCode.VIOLATIONS
