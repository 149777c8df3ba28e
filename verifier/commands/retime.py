"""`python -m verifier retime JOBS`: time kernels twice, a while apart: how much does that differ?

JOBS has one JSON object a line: ``{"task": folder, "kernel": file}`` as `serve` takes it, and, if
the contract's own workloads are not wanted, ``"dims": {"N": 4096, ...}``. All kernels are timed
once, then all a second time, each time in a fresh process. Nothing is judged: it is the clock that
is on trial here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from verifier.candidate.timed import TimedCandidate, TimingError
from verifier.commands.exit_codes import ExitCode
from verifier.commands.verify import add_device_arguments
from verifier.contract import Workload
from verifier.measure.latency import Stage, workloads
from verifier.measure.looks import WrongOutputError
from verifier.pipeline import build_bench
from verifier.records import DeviceMode, Measurement, to_json
from verifier.session import Job, Session, UsageError, job_from_json, make_request, read_kernel
from verifier.source import read_source

GOAL: Final = 0.03
"""The same kernel timed twice differs by less (median over the kernels)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `retime`."""
    parser.add_argument("jobs", type=Path, help="one JSON object a line: task, kernel, dims")
    parser.add_argument("--json", type=Path, help="write the table here too")
    parser.add_argument("--seconds", type=float, default=600.0, help="begin nothing after so long")
    add_device_arguments(parser)


@dataclass(frozen=True, slots=True)
class Twice:
    """One kernel on one workload, timed twice."""

    kernel: str
    workload: str
    first: Measurement
    second: Measurement

    @property
    def difference(self) -> float:
        """|a - b| over their mean."""
        a, b = self.first.latency_ms, self.second.latency_ms
        return abs(a - b) / ((a + b) / 2)

    def to_json(self) -> dict[str, Any]:
        both = {"first": to_json(self.first), "second": to_json(self.second)}
        return {
            "kernel": self.kernel,
            "workload": self.workload,
            "difference": self.difference,
            **both,
        }

    def line(self) -> str:
        clock = "/".join(sorted({self.first.clock.value, self.second.clock.value}))
        return (
            f"{self.kernel:36} {self.workload:10} {self.first.latency_ms * 1e3:10.2f} us "
            f"{self.second.latency_ms * 1e3:10.2f} us {self.difference:7.2%}  {clock}"
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the jobs file."""

    job: Job
    dims: dict[str, int] | None = None


def read_jobs(path: Path) -> list[Line]:
    """Raises UsageError naming the line that is no job."""
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    lines = []
    for number, text in enumerate(filter(str.strip, texts), 1):
        try:
            document = json.loads(text)
            lines.append(Line(job_from_json(document), document.get("dims")))
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{path}, line {number}: {error}") from error
    return lines


def time_once(session: Session, line: Line) -> list[Measurement]:
    """The kernel's own rows, one for each workload, in a fresh process."""
    source = read_kernel(line.job.kernel)
    request = make_request(line.job, read_source(source))
    bench = build_bench(request, session.mode, session.device)
    wanted = workloads(bench)
    if line.dims is not None:
        wanted = (Workload("as asked", line.dims),)
    rows: list[Measurement] = []
    candidate = session.sandbox.load(
        source=source, entry=line.job.entry, convention=request.task.contract.convention
    )
    try:
        for workload in wanted:
            rows += Stage(bench, workload, baselines=()).measure(TimedCandidate(candidate))
    except (TimingError, WrongOutputError) as error:
        sys.stderr.write(f"{line.job.kernel.stem}: {error}\n")
    finally:
        candidate.close()
    return rows


def pair(name: str, first: Sequence[Measurement], second: Sequence[Measurement]) -> list[Twice]:
    """The workloads that were timed, and believed, both times."""
    again = {row.workload: row for row in second if not row.rejected}
    return [
        Twice(name, row.workload, row, again[row.workload])
        for row in first
        if row.workload in again and not row.rejected
    ]


def retime(session: Session, lines: Sequence[Line], seconds: float) -> list[Twice]:
    """All kernels once, then all again; what the time limit leaves out is left out."""
    started = time.monotonic()
    firsts: list[list[Measurement]] = []
    for line in lines:
        if time.monotonic() - started > seconds / 2:
            break
        firsts.append(time_once(session, line))
    found: list[Twice] = []
    for line, first in zip(lines, firsts, strict=False):
        if time.monotonic() - started > seconds:
            break
        found += pair(line.job.kernel.stem, first, time_once(session, line))
    return found


def run(args: argparse.Namespace) -> ExitCode:
    """Exit 0 when the median difference is below 3%, 1 when it is not or nothing was timed."""
    lines = read_jobs(args.jobs)
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        if session.mode is not DeviceMode.CUDA:
            raise UsageError("kernels are timed on a GPU; this machine has none to use")
        found = retime(session, lines, args.seconds)
        environment = to_json(session.environment)
    if not found:
        sys.stderr.write("no kernel could be timed twice\n")
        return ExitCode.VIOLATIONS
    middle = median(one.difference for one in found)
    sys.stdout.write("\n".join(one.line() for one in found) + "\n")
    sys.stdout.write(f"median difference {middle:.2%} over {len(found)} (goal: below {GOAL:.0%})\n")
    if args.json:
        table = {"environment": environment, "median": middle, "rows": [r.to_json() for r in found]}
        args.json.write_text(json.dumps(table, indent=1), encoding="utf-8")
    return ExitCode.CLEAN if middle < GOAL else ExitCode.VIOLATIONS
