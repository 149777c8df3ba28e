"""`python -m verifier audit`: judge many kernels of a corpus and count what is wrong with them."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from verifier.audit import adapters
from verifier.audit.corpus import Corpus, CorpusError, CorpusKernel
from verifier.audit.pack import is_pack, read_pack, write_pack
from verifier.audit.pool import Plan, Pool, PoolError
from verifier.audit.render import markdown, terminal
from verifier.audit.results import ResultsFile, Row, latest, read_rows
from verifier.audit.summary import Summary, summarise
from verifier.commands.exit_codes import ExitCode
from verifier.commands.verify import add_device_arguments
from verifier.records import to_json
from verifier.session import UsageError, parse_gates
from verifier.subject import InfrastructureError

LIMIT_S: Final = 120.0
SEED: Final = 20260620
"""What chooses and what draws, unless --seed says otherwise: an audit is to be repeated."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `audit`."""
    parser.add_argument("corpus", type=Path, help="folder, or a file that --pack wrote")
    parser.add_argument("--adapter", metavar="NAME", help=f"one of {', '.join(adapters.ADAPTERS)}")
    parser.add_argument("--out", type=Path, default=Path("audit"), help="folder of the results")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="write the corpus here and stop")
    parser.add_argument("--limit", type=int, metavar="N", help="judge N kernels, drawn by --seed")
    parser.add_argument("--only", choices=("kernels", "library"), help="leave out the others")
    parser.add_argument("--shard", metavar="I/N", help="judge the I-th of N parts of the tasks")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)d")
    parser.add_argument("--workers", type=int, default=1, help="verifiers at once (default: 1)")
    parser.add_argument("--recycle", type=int, default=0, metavar="N", help="replace one after N")
    parser.add_argument("--gates", help="judge only these, such as G1,G4 (default: all twelve)")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=LIMIT_S,
        metavar="S",
        help="seconds for one kernel; what is left then stays open (default: %(default)g)",
    )
    parser.add_argument(
        "--stop-after", type=float, metavar="S", help="take no further kernel after S seconds"
    )
    parser.add_argument("--resume", action="store_true", help="judge what --out lacks")
    parser.add_argument("--report", action="store_true", help="judge nothing, count what --out has")
    add_device_arguments(parser)


def run(args: argparse.Namespace) -> ExitCode:
    """Judge and count; exit 0 once every chosen kernel has a row, whatever the verdicts say."""
    try:
        corpus = read_corpus(args.corpus, args.adapter)
        if args.pack is not None:
            return _pack(corpus, args)
        return _audit(corpus, args)
    except CorpusError as error:
        raise UsageError(str(error)) from error
    except PoolError as error:
        raise InfrastructureError(str(error)) from error


def read_corpus(path: Path, adapter: str | None) -> Corpus:
    """The corpus in a packed file or, through its adapter, in a folder. Raises CorpusError."""
    if is_pack(path):
        return read_pack(path)
    if adapter is None:
        known = ", ".join(adapters.ADAPTERS)
        raise CorpusError(f"{path} is no packed corpus, so --adapter must name what it is: {known}")
    return adapters.find(adapter).read(path)


def _pack(corpus: Corpus, args: argparse.Namespace) -> ExitCode:
    chosen = {kernel.key for kernel in choose(corpus, args)}
    kept = tuple(k for k in corpus.kernels if k.problem or k.key in chosen)
    nbytes = write_pack(args.pack, Corpus(corpus.tasks, kept))
    sys.stdout.write(f"{args.pack}: {len(chosen)} kernels to judge, {nbytes / 1e6:.1f} MB\n")
    return ExitCode.CLEAN


def choose(corpus: Corpus, args: argparse.Namespace) -> list[CorpusKernel]:
    """The kernels to judge: of the wanted kind and part, and at most --limit of them by lot."""
    kernels = list(corpus.judgeable)
    if args.only is not None:
        kernels = [k for k in kernels if k.content.is_kernel == (args.only == "kernels")]
    if args.shard is not None:
        kernels = _shard(kernels, args.shard)
    if args.limit is not None and args.limit < len(kernels):
        lot = random.Random(args.seed)  # noqa: S311 - to be repeated, not to be secret
        kernels = lot.sample(sorted(kernels, key=lambda kernel: kernel.key), args.limit)
    return kernels


def _shard(kernels: list[CorpusKernel], words: str) -> list[CorpusKernel]:
    """Every N-th task, so that a task's kernels stay together. Raises UsageError."""
    try:
        part, parts = (int(word) for word in words.split("/"))
    except ValueError:
        raise UsageError(f"--shard {words!r} is not I/N, such as 1/3") from None
    if not 1 <= part <= parts:
        raise UsageError(f"--shard {words}: I goes from 1 to N")
    tasks = sorted({kernel.task for kernel in kernels})
    mine = set(tasks[part - 1 :: parts])
    return [kernel for kernel in kernels if kernel.task in mine]


@dataclass(slots=True)
class Meter:
    """A line of progress on stderr, at most one a second."""

    total: int
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    _shown: float = 0.0

    def note(self, row: Row) -> None:
        self.done += 1
        word = row.verdict.outcome.value if row.verdict else f"{row.error_kind} error"
        self.counts[word] = self.counts.get(word, 0) + 1
        now = time.monotonic()
        if now - self._shown >= 1.0 or self.done == self.total:
            self._shown = now
            sys.stderr.write(self.line(now) + "\n")
            sys.stderr.flush()

    def line(self, now: float) -> str:
        """Such as '[ 12/100] 61 a minute, 2 min left, 5 accepted, 7 rejected'."""
        rate = self.done / max(now - self.started, 1e-9)
        left_s = (self.total - self.done) / rate if rate else 0.0
        words = ", ".join(f"{n} {word}" for word, n in sorted(self.counts.items()))
        width = len(str(self.total))
        return (
            f"[{self.done:>{width}}/{self.total}] {rate * 60:.1f} a minute, "
            f"{left_s / 60:.1f} min left, {words}"
        )


def _audit(corpus: Corpus, args: argparse.Namespace) -> ExitCode:
    path = args.out / "results.jsonl"
    chosen = choose(corpus, args)
    if args.report:
        _report(corpus, chosen, args.out)
        return ExitCode.CLEAN
    results = ResultsFile(path, resume=args.resume)
    try:
        waiting = _waiting(chosen, path, args.resume)
        _judge(corpus, waiting, results, args)
    finally:
        results.close()
    summary = _report(corpus, chosen, args.out)
    return ExitCode.CLEAN if not summary.errors and not summary.left else ExitCode.INFRASTRUCTURE


def _waiting(chosen: Sequence[CorpusKernel], path: Path, resume: bool) -> list[CorpusKernel]:
    """The chosen kernels without a row, and those whose row tells of an error of ours."""
    settled = {row.key for row in read_rows(path) if row.error_kind != "infrastructure"}
    return [kernel for kernel in chosen if not resume or kernel.key not in settled]


def _judge(
    corpus: Corpus, kernels: list[CorpusKernel], results: ResultsFile, args: argparse.Namespace
) -> None:
    meter = Meter(len(kernels))
    gates = parse_gates(args.gates.split(",")) if args.gates else ()

    def keep(row: Row) -> None:
        results.append(row)
        meter.note(row)

    plan = Plan(
        seed=args.seed,
        device=args.device,
        workers=max(args.workers, 1),
        limit_s=args.time_limit,
        recycle=args.recycle,
        gates=tuple(gate.value for gate in gates),
        options=("--unsafe-no-sandbox",) if args.unsafe_no_sandbox else (),
        stop_after_s=args.stop_after,
    )
    Pool(corpus, plan, keep).run(kernels)


def _report(corpus: Corpus, chosen: Sequence[CorpusKernel], out: Path) -> Summary:
    """Count and write summary.json and summary.md beside the rows; print the tables."""
    wanted = {kernel.key for kernel in chosen}
    considered = [k for k in corpus.kernels if k.problem or k.key in wanted]
    summary = summarise(considered, latest(read_rows(out / "results.jsonl")))
    document = json.dumps(to_json(summary), indent=1, allow_nan=False)
    (out / "summary.json").write_text(document + "\n", encoding="utf-8")
    (out / "summary.md").write_text(markdown(summary), encoding="utf-8")
    sys.stdout.writelines(f"{line}\n" for line in terminal(summary))
    return summary
