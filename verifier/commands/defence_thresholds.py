"""`python -m verifier defend thresholds`: the rejection curve of the soft comparator."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.commands.studies import add_study_arguments, origin_since, study_save
from verifier.commands.verify import add_device_arguments
from verifier.defences.thresholds import (
    DEFAULT,
    FACTORS,
    FLOORS,
    Grid,
    KernelOutcome,
    curve,
    swayed,
    sweep_corpora,
)
from verifier.session import Session, UsageError
from verifier.studies import ThresholdPoint, ThresholdSweep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `defend thresholds`."""
    parser.add_argument(
        "--suite-dir", type=Path, required=True, help="folder with tasks/ and kernels/<group>/"
    )
    parser.add_argument("--groups", default="p1_replica,illusions26", help="corpora (%(default)s)")
    parser.add_argument("--only", default="", help="kernels whose labels hold one of these (a,b)")
    parser.add_argument("--factors", default=_text(FACTORS), help="default: %(default)s")
    parser.add_argument("--floors", default=_text(FLOORS), help="default: %(default)s")
    add_study_arguments(parser)
    add_device_arguments(parser)


def _text(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


def _numbers(text: str, name: str) -> tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError as error:
        raise UsageError(f"--{name} {text!r}: {error}") from error
    if any(not 0 <= value < float("inf") for value in values):
        raise UsageError(f"--{name} {text!r}: numbers from 0 up")
    return values


def run(args: argparse.Namespace) -> ExitCode:
    """Sweep, print the grid, store it; exit 1 if the default rule accuses a control."""
    grid = Grid(_numbers(args.factors, "factors"), _numbers(args.floors, "floors"))
    groups = tuple(args.groups.split(","))
    only = [text for text in args.only.split(",") if text]
    started = time.time()
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        outcomes = sweep_corpora(
            session, args.suite_dir, groups, grid=grid, seed=args.seed, only=only, tell=_tell
        )
        origin = origin_since(started, session.environment, args.seed)
    if not outcomes:
        raise UsageError("no such kernel in these corpora")
    points, moved = curve(outcomes, grid), swayed(outcomes, grid)
    study = ThresholdSweep(origin, groups, DEFAULT, points, moved)
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    study_save(study, args)
    default = study.at(*DEFAULT)
    clean = default is not None and not default.controls_accused
    return ExitCode.CLEAN if clean else ExitCode.VIOLATIONS


def _tell(outcome: KernelOutcome) -> None:
    role = "wrong" if outcome.wrong else "control"
    word = "rejected" if outcome.rejected(DEFAULT) else "accepted"
    sys.stderr.write(f"{outcome.label:<32} {role:<8} {word}, {len(outcome.cases)} cases\n")
    sys.stderr.flush()


def report_lines(study: ThresholdSweep) -> Iterator[str]:
    """Two grids, factor down and floor across: wrong kernels rejected, controls accused."""
    floors = sorted({point.floor for point in study.points})
    yield from _grid("wrong kernels rejected", study, floors, _wrong)
    yield from _grid("controls accused", study, floors, _controls)
    yield f"the rule in use is factor {study.default[0]:g}, floor {study.default[1]:g}"
    for one in study.swayed:
        role = "wrong" if one.wrong else "CONTROL"
        at = len(one.rejected_at)
        yield f"  {role} {one.kernel}: rejected at {at} of {len(study.points)} rules by " + (
            ", ".join(one.gates)
        )


def _wrong(point: ThresholdPoint) -> str:
    return f"{point.wrong_rejected}/{point.wrong}"


def _controls(point: ThresholdPoint) -> str:
    return f"{point.controls_accused}/{point.controls}"


def _grid(
    title: str, study: ThresholdSweep, floors: list[float], cell: Callable[[ThresholdPoint], str]
) -> Iterator[str]:
    yield f"{title} (factor down, floor across)"
    yield "        " + "".join(f"{floor:>9g}" for floor in floors)
    for factor in sorted({point.factor for point in study.points}):
        row = (study.at(factor, floor) for floor in floors)
        yield f"  {factor:>5g} " + "".join(f"{cell(one) if one else '':>9}" for one in row)
    yield ""
