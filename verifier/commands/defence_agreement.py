"""`python -m verifier defend agreement`: our KernelBench test beside KernelBench's own."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from verifier.commands.exit_codes import ExitCode
from verifier.commands.studies import add_study_arguments, origin_since, study_save
from verifier.commands.verify import add_device_arguments
from verifier.defences import agreement
from verifier.defences.kernelbench import TRIALS, Literal
from verifier.defences.upstream import EVAL, identify
from verifier.records import DeviceMode
from verifier.session import Session, UsageError
from verifier.studies import AgreementRow, AgreementStudy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `defend agreement`."""
    parser.add_argument(
        "--suite-dir", type=Path, required=True, help="folder with tasks/ and kernels/<group>/"
    )
    parser.add_argument("--groups", default="p1_replica,illusions26", help="corpora (%(default)s)")
    parser.add_argument("--only", default="", help="kernels whose labels hold one of these (a,b)")
    parser.add_argument(
        "--kernelbench",
        type=Path,
        required=True,
        help="a checkout of KernelBench; its code runs the kernels without any sandbox",
    )
    parser.add_argument("--trials", type=int, default=TRIALS, help="draws (default: %(default)s)")
    parser.add_argument(
        "--side-by-side", type=int, default=4, help="upstream processes at once (%(default)s)"
    )
    parser.add_argument(
        "--explanations", type=Path, help="JSON: kernel to why the two checks differ on it"
    )
    add_study_arguments(parser)
    add_device_arguments(parser)


def run(args: argparse.Namespace) -> ExitCode:
    """Ask both, print and store; exit 1 where they differ and nobody has explained it."""
    groups, only = args.groups.split(","), [text for text in args.only.split(",") if text]
    if not (args.kernelbench / EVAL).is_file():
        raise UsageError(f"{args.kernelbench} is no KernelBench checkout (no {EVAL})")
    posed = agreement.pose(args.suite_dir, groups, only)
    said = _explanations(args.explanations)
    started = time.time()
    with Session(args.device, unsafe=args.unsafe_no_sandbox) as session:
        mine = agreement.ours(session, posed, trials=args.trials, tell=_tell)
        real = agreement.theirs(
            session, args.kernelbench, posed, trials=args.trials, side_by_side=args.side_by_side
        )
        missing = "" if session.mode is DeviceMode.CUDA else agreement.NO_GPU
        origin = origin_since(started, session.environment, args.seed)
    found = agreement.rows(posed, mine, real, said, missing=missing)
    study = AgreementStudy(origin, identify(args.kernelbench), args.trials, found)
    sys.stdout.writelines(f"{line}\n" for line in report_lines(study))
    study_save(study, args)
    open_ones = [row for row in study.disagreements if not row.explanation]
    return ExitCode.VIOLATIONS if open_ones or not study.judged else ExitCode.CLEAN


def _explanations(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise UsageError(f"{path}: a JSON object of texts by kernel")
    return found


def _tell(name: str, found: Literal) -> None:
    word = "accepts" if found.accepted else "rejects"
    sys.stderr.write(f"{name:<32} ours {word} {found.detail}\n")
    sys.stderr.flush()


def report_lines(study: AgreementStudy) -> Iterator[str]:
    """The share and kappa first, then each disagreement, then what was not judged."""
    yield f"our literal test beside {study.upstream}, {study.trials} trials"
    yield f"  agree on {study.share.text}"
    yield f"  kappa {_kappa(study)}"
    for row in study.disagreements:
        yield from _difference(row)
    for row in study.rows:
        if not row.judged:
            yield f"  not compared: {row.kernel}: {row.theirs_detail or row.ours_detail}"


def _kappa(study: AgreementStudy) -> str:
    found = study.agreement
    if found.kappa is None or found.low is None or found.high is None:
        return "says nothing: both gave one and the same answer throughout"
    return f"{found.kappa:.3f} (95% {found.low:.3f} to {found.high:.3f})"


def _difference(row: AgreementRow) -> Iterator[str]:
    yield f"  {row.kernel}: ours {_word(row.ours)}, theirs {_word(row.theirs)}"
    yield f"      ours: {row.ours_detail}"
    yield f"      theirs: {row.theirs_detail}"
    yield f"      {row.explanation or 'NOT EXPLAINED'}"


def _word(accepted: bool | None) -> str:
    return "accepts" if accepted else "rejects"
