"""`python -m verifier calibrate`: recall and false positives of tolerances over a corpus."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from verifier.calibrate import Calibration, Point, calibrate
from verifier.commands.exit_codes import ExitCode
from verifier.commands.verify import add_device_arguments
from verifier.records import to_json
from verifier.session import Session, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `calibrate`."""
    parser.add_argument(
        "--suite-dir", type=Path, required=True, help="folder with tasks/ and kernels/<group>/"
    )
    parser.add_argument("--group", default="p1_replica", help="corpus (default: p1_replica)")
    parser.add_argument("--seed", type=int, default=0, help="master seed (default: 0)")
    parser.add_argument(
        "--iterations",
        type=int,
        default=30,
        help="cases per kernel and strategy; even ones calibrate, odd ones judge (default: 30)",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the whole study here")
    add_device_arguments(parser)


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}"


def _line(point: Point) -> str:
    cells = (
        _share(point.wrong_kernels_flagged, point.wrong_kernels),
        _share(point.wrong_cases_flagged, point.wrong_cases),
        _share(point.control_kernels_flagged, point.control_kernels),
        _share(point.control_cases_flagged, point.control_cases),
    )
    return f"  {point.rule:<20}" + "".join(f"{cell:>14}" for cell in cells)


def report_lines(study: Calibration) -> Iterator[str]:
    """The sweep as tables, one for each strategy, and the calibrated tolerances."""
    for strategy, points in study.points.items():
        yield f"{study.group}, {strategy} cases (odd ones of {study.iterations}, seed {study.seed})"
        heads = ("wrong kernels", "wrong cases", "controls", "control cases")
        yield f"  {'flagged by':<20}" + "".join(f"{head:>14}" for head in heads)
        yield from (_line(point) for point in points)
        yield ""
    yield "calibrated absolute tolerances (even cases of the controls)"
    for task, by_dtype in study.tolerances.items():
        cells = ", ".join(f"{dtype} {atol:g}" for dtype, atol in by_dtype.items())
        yield f"  {task:<24}{cells}"
    for label, count in study.refused.items():
        yield f"  {label}: {count} cases not judged"


def run(args: argparse.Namespace) -> ExitCode:
    """Print the study; exit 0 once it is done, whatever it found."""
    if args.iterations < 2:
        raise UsageError("--iterations is at least 2: one to calibrate, one to judge")
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        study = calibrate(
            session, args.suite_dir, args.group, seed=args.seed, iterations=args.iterations
        )
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    if args.json is not None:
        document = json.dumps(to_json(study), indent=1, allow_nan=False)
        args.json.write_text(document + "\n", encoding="utf-8")
    return ExitCode.CLEAN
