"""`python -m benchmarks.fuzzoracle.loose_table`: declared against measured, as a Markdown table.

Upstream's verdict on each entry is a constant in its meta.json. Here the loose test is run, at the
task's usual shape, by a verifier of its own process: this module, like all of benchmarks, loads no
torch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.fuzzoracle.suite import GROUPS, HERE, CorpusEntry, read_group
from verifier.records import GateStatus, Verdict, from_json

ROOT: Final = HERE.parents[1]
LAST: Final = frozenset({"verdict", "error", "cancelled"})


class TableError(RuntimeError):
    """The verifier judged nothing; the message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel: what upstream declares of it, and what the verifier measured."""

    entry: CorpusEntry
    declared: str
    verdict: Verdict

    def cells(self) -> Iterator[str]:
        """The row of the table, cell by cell."""
        yield f"`{self.entry.label}`"
        yield self.entry.role
        yield self.declared or "none"
        yield from self._loose_cells()
        failed = [g.gate.value for g in self.verdict.gates if g.status is GateStatus.FAIL]
        yield ": ".join(filter(None, (self.verdict.outcome.value, ", ".join(failed))))

    def _loose_cells(self) -> Iterator[str]:
        loose = self.verdict.loose
        if loose is None:
            yield from ("not run", "", "")
            return
        yield "accepts" if loose.accepted else "**rejects**"
        yield ", ".join(f"{name}={size}" for name, size in loose.dims.items())
        yield f"{loose.atol:g} / {loose.rtol:g}"


def declared_verdicts(group: str) -> dict[str, str]:
    """Upstream's own word on each entry, by label; empty for a corpus that has none."""
    path = HERE / "kernels" / group / "index.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    return {row["label"]: row["declared"]["verdict"] for row in rows if "declared" in row}


def judge(entries: Sequence[CorpusEntry], device: str, seed: int) -> Iterator[Row]:
    """A row for each entry, from one warm verifier. Raises TableError when it cannot judge."""
    declared = {label: word for g in GROUPS for label, word in declared_verdicts(g).items()}
    command = [sys.executable, "-m", "verifier", "serve", "--device", device]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin is not None  # noqa: S101 - asked for above
        assert process.stdout is not None  # noqa: S101 - asked for above
        for entry in entries:
            process.stdin.write(json.dumps(_job(entry, seed)) + "\n")
            process.stdin.flush()
            verdict = _verdict(entry.label, process.stdout)
            yield Row(entry, declared.get(entry.label, ""), verdict)
        process.stdin.close()


def _job(entry: CorpusEntry, seed: int) -> dict[str, Any]:
    return {
        "id": entry.label,
        "task": str(HERE / "tasks" / entry.task),
        "kernel": str(entry.path),
        "seed": seed,
        "measure": False,
    }


def _verdict(label: str, lines: Iterable[str]) -> Verdict:
    """The verdict that ends this job's lines."""
    for line in lines:
        document = json.loads(line)
        if document.get("event") == "verdict":
            return from_json(Verdict, document["payload"])
        if document.get("event") in LAST:
            raise TableError(f"{label}: {document['payload'].get('message', 'cancelled')}")
    raise TableError(f"{label}: the verifier ended without a verdict")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The Markdown lines, each as soon as its kernel is judged."""
    heads = ("kernel", "role", "declared", "loose test", "shape", "atol / rtol", "gates")
    yield _line(heads)
    yield _line("---" for _ in heads)
    yield from (_line(row.cells()) for row in rows)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; exit 0 once every kernel has its row, 3 when the verifier cannot judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", choices=GROUPS, default="p1_replica")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N (default: auto)")
    parser.add_argument("--seed", type=int, default=42, help="master seed (default: 42)")
    parser.add_argument("--label", action="append", help="only this kernel (may be repeated)")
    args = parser.parse_args(argv)
    entries = [e for e in read_group(args.group) if not args.label or e.label in args.label]
    if not entries:
        parser.error("no kernel of this corpus has that label")
    try:
        for line in table(judge(entries, args.device, args.seed)):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except TableError as error:
        sys.stderr.write(f"loose_table: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
