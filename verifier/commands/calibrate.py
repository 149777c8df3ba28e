"""`python -m verifier calibrate`: recall and false positives of tolerances over a corpus."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from verifier.calibrate import ATOLS, Calibration, OpSweep, Point, Tried, calibrate
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
    parser.add_argument("--only", default="", help="tasks whose names hold one of these (a,b)")
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


def _table(title: str, points: Iterable[Point]) -> Iterator[str]:
    yield title
    heads = ("wrong kernels", "wrong cases", "controls", "control cases")
    yield f"  {'flagged by':<20}" + "".join(f"{head:>14}" for head in heads)
    yield from (_line(point) for point in points)
    yield ""


def _tried_cells(tried: Tried | None) -> str:
    """A tolerance, the wrong cases that it flags, and the cases of controls."""
    if tried is None:
        return f"{'none':>9}{'':>10}{'':>10}"
    point = tried.point
    wrong = _share(point.wrong_cases_flagged, point.wrong_cases) if point.wrong_cases else "-"
    controls = _share(point.control_cases_flagged, point.control_cases)
    return f"{tried.atol:>9.0e}{wrong:>10}{controls:>10}"


def _op_lines(by_op: Iterable[OpSweep]) -> Iterator[str]:
    triples = ((head, "wrong", "controls") for head in ("clean", "calibr.", "declared"))
    columns = "".join(f"{a:>9}{b:>10}{c:>10}" for a, b, c in triples)
    yield f"  {'op':<20}{'dtype':<9}{columns}"
    for one in by_op:
        cells = "".join(_tried_cells(each) for each in (one.clean, one.calibrated, one.declared))
        yield f"  {one.task:<20}{one.dtype:<9}{cells}"


def report_lines(study: Calibration) -> Iterator[str]:
    """The sweep as tables: by strategy, by kind of planted value, by op and dtype."""
    drawn = f"odd ones of {study.iterations}, seed {study.seed}"
    for strategy, points in study.points.items():
        yield from _table(f"{study.group}, {strategy} cases ({drawn})", points)
    for plant, points in study.by_plant.items():
        few = [point for point in points if not point.rule.startswith("atol ")]
        yield from _table(f"{study.group}, adversarial cases with {plant} planted", few)
    yield "absolute tolerances by op and dtype, on values of ordinary size: set on the even cases"
    yield "of the controls; then, of wrong kernels and of controls, the odd cases that each flags"
    yield (
        f"  clean: the smallest of the sweep ({ATOLS[0]:g} to {ATOLS[-1]:g}) that flags no control;"
        " calibr.: twice the greatest error of a control, rounded up"
    )
    yield from _op_lines(study.by_op)
    for label, count in study.refused.items():
        yield f"  {label}: {count} cases not judged"


def run(args: argparse.Namespace) -> ExitCode:
    """Print the study; exit 0 once it is done, whatever it found."""
    if args.iterations < 2:
        raise UsageError("--iterations is at least 2: one to calibrate, one to judge")
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        study = calibrate(
            session,
            args.suite_dir,
            args.group,
            seed=args.seed,
            iterations=args.iterations,
            only=[text for text in args.only.split(",") if text],
        )
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    if args.json is not None:
        document = json.dumps(to_json(study), indent=1, allow_nan=False)
        args.json.write_text(document + "\n", encoding="utf-8")
    return ExitCode.CLEAN
