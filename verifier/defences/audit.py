"""Defence 4, hand audit: two people read a stratified sample of findings; their words are counted.

A sample is a folder that needs no verifier to read: ``items.csv`` with a row a finding, and a text
a finding with the kernel's source, the verdict and its counterexample. A reader writes right, wrong
or unsure into a copy of the table, without seeing the other's; importing joins them. Strata are
gate x op class x verdict; each gives ten findings where it has so many, drawn from the seed.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from verifier.records import GateResult, GateStatus, RecordError, Verdict, from_json, to_json
from verifier.referee.generator import Stream
from verifier.session import UsageError
from verifier.studies import AuditItem, Judgement

PER_STRATUM: Final = 10
READ: Final = (GateStatus.FAIL, GateStatus.PASS, GateStatus.INCONCLUSIVE)
"""Verdicts that are worth a reader's time; the others say themselves that nothing was judged."""

TABLE: Final = "items.csv"
SAMPLE: Final = "sample.json"
COLUMNS: Final = (
    "id",
    "gate",
    "op_class",
    "verdict",
    "kernel",
    "task",
    "file",
    "judgement",
    "note",
)


@dataclass(frozen=True, slots=True)
class Found:
    """One finding of one verdict: what may be sampled."""

    verdict: Verdict
    result: GateResult
    op_class: str

    @property
    def id(self) -> str:
        """The same in every sample: kernel, task and gate."""
        name = self.verdict.task.name.replace("/", "-")
        return f"{self.verdict.kernel.sha256[:10]}-{name}-{self.result.gate.value.lower()}"

    @property
    def item(self) -> AuditItem:
        return AuditItem(
            id=self.id,
            kernel=self.verdict.kernel.sha256[:12],
            task=self.verdict.task.name,
            gate=self.result.gate,
            op_class=self.op_class,
            verdict=self.result.status,
        )


def read_verdicts(paths: Iterable[Path]) -> Iterator[Verdict]:
    """Verdicts from files: one document each, or one a line. Raises UsageError otherwise."""
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            whole = path.suffix == ".json"
            documents = [json.loads(text)] if whole else map(json.loads, _lines(text))
            yield from (from_json(Verdict, document) for document in documents)
        except (OSError, ValueError, RecordError) as error:
            raise UsageError(f"{path}: no verdicts: {error}") from error


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def findings(
    verdicts: Iterable[Verdict],
    classes: Mapping[str, str],
    statuses: Sequence[GateStatus] = READ,
) -> list[Found]:
    """Every finding with one of these statuses; ``classes`` maps a task's name to its op class."""
    return [
        Found(verdict, result, classes.get(verdict.task.name, "other"))
        for verdict in verdicts
        for result in verdict.gates
        if result.status in statuses
    ]


def sample(
    found: Iterable[Found], *, seed: int, per_stratum: int = PER_STRATUM
) -> tuple[list[Found], dict[str, int]]:
    """The drawn findings, and how many each stratum holds. One finding counts once."""
    strata: dict[str, dict[str, Found]] = defaultdict(dict)
    for one in found:
        strata[one.item.stratum][one.id] = one
    drawn = [
        members[at]
        for stratum, by_id in sorted(strata.items())
        for members in [sorted(by_id.values(), key=lambda one: one.id)]
        for at in Stream(seed, "audit", stratum).permutation(len(members)).tolist()[:per_stratum]
    ]
    return drawn, {stratum: len(by_id) for stratum, by_id in sorted(strata.items())}


def export(drawn: Sequence[Found], population: Mapping[str, int], folder: Path) -> None:
    """Write the sample into a new folder. Raises UsageError when there is something already."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; judgements in it would be lost")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(_table_row(one) for one in drawn)
    for one in drawn:
        (folder / f"{one.id}.txt").write_text(_page(one), encoding="utf-8")
    document = {"population": dict(population), "items": [to_json(one.item) for one in drawn]}
    (folder / SAMPLE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _table_row(one: Found) -> dict[str, str]:
    item = one.item
    return {
        "id": item.id,
        "gate": item.gate.value,
        "op_class": item.op_class,
        "verdict": item.verdict.value,
        "kernel": item.kernel,
        "task": item.task,
        "file": f"{one.id}.txt",
        "judgement": "",
        "note": "",
    }


def _page(one: Found) -> str:
    """What a reader needs: the finding, its counterexample, the kernel."""
    verdict, result = one.verdict, one.result
    shown: dict[str, Any] = to_json(result)
    shown.pop("duration_ms")
    words = [
        f"{one.id}",
        f"task {verdict.task.name} ({one.op_class}), seed {verdict.seed}, "
        f"{verdict.environment.mode.value}",
        f"gate {result.gate.value} says {result.status.value}: {result.reason or result.summary}",
        "",
        "Is that finding right? Write right, wrong or unsure beside its id in items.csv.",
        "",
        "--- the finding",
        json.dumps(shown, indent=1),
        "",
        "--- the kernel",
        verdict.kernel.source,
    ]
    return "\n".join(words)


# --- what the readers said


def read_sample(folder: Path) -> tuple[list[AuditItem], dict[str, int]]:
    """An exported sample. Raises UsageError when it is none."""
    path = folder / SAMPLE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        items = [from_json(AuditItem, item) for item in document["items"]]
        population = {str(k): int(v) for k, v in document["population"].items()}
    except (OSError, ValueError, KeyError, TypeError, RecordError) as error:
        raise UsageError(f"{path}: no sample: {error}") from error
    return items, population


def read_judgements(path: Path) -> dict[str, Judgement]:
    """A reader's table: id to judgement, empty ones left out. Raises UsageError naming the row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: {error}") from error
    found: dict[str, Judgement] = {}
    for number, row in enumerate(rows, start=2):
        word = (row.get("judgement") or "").strip().lower()
        if not word:
            continue
        if word not in set(Judgement) or not row.get("id"):
            raise UsageError(f"{path}, line {number}: {word!r} is none of {', '.join(Judgement)}")
        found[str(row["id"])] = Judgement(word)
    return found


def join(
    items: Iterable[AuditItem], by_reader: Mapping[str, Mapping[str, Judgement]]
) -> tuple[AuditItem, ...]:
    """The items with what each reader said. Raises UsageError for an id that no item has."""
    known = list(items)
    ids = {item.id for item in known}
    for reader, said in by_reader.items():
        if strange := sorted(said.keys() - ids):
            raise UsageError(f"{reader} judges {strange[0]}, which this sample does not hold")
    return tuple(
        replace(
            item,
            judgements={name: said[item.id] for name, said in by_reader.items() if item.id in said},
        )
        for item in known
    )


def read_classes(suites: Iterable[Path]) -> dict[str, str]:
    """Op class by task name: the category in each task's contract."""
    found: dict[str, str] = {}
    for suite in suites:
        for path in sorted(suite.rglob("task.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            found[str(document["slug"])] = str(document["category"])
    return found
