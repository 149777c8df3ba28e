"""`python -m verifier defend positive`: the planted violators."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from verifier.commands.exit_codes import ExitCode
from verifier.commands.studies import add_study_arguments, origin_since, study_save
from verifier.commands.verify import add_device_arguments
from verifier.defences.positive import positive_control
from verifier.session import Session
from verifier.studies import PositiveControl
from verifier.wording import in_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `defend positive`."""
    add_study_arguments(parser)
    add_device_arguments(parser)


def run(args: argparse.Namespace) -> ExitCode:
    """Judge them, print and store the table; exit 1 if one that can show here escaped."""
    started = time.time()
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        rows = tuple(positive_control(session, seed=args.seed))
        study = PositiveControl(origin_since(started, session.environment, args.seed), rows)
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    study_save(study, args)
    return ExitCode.CLEAN if study.clean else ExitCode.VIOLATIONS


def report_lines(study: PositiveControl) -> Iterator[str]:
    """One line a violator, and one for each gate that accused a twin."""
    for row in study.rows:
        word = "caught" if row.caught else "not here" if row.not_here else "ESCAPED"
        loose = "fools" if row.loose_accepted else "does not fool"
        reason = row.not_here or in_one_line(row.reason, 70)
        yield f"  {row.family:<28} {row.gate:<4} {word:<9} {loose} the loose test; {reason}"
        yield from (f"    its twin is accused by {one}" for one in row.twin_accused)
    yield f"{study.caught} of {study.judged} caught{_missing(study)}"


def _missing(study: PositiveControl) -> str:
    left = [row for row in study.rows if row.not_here]
    return "".join(f"; {row.family} is not judged here: {row.not_here}" for row in left)
