"""Studies of the verifier itself: the control sweep and the four defences, as they are stored.

Torch-free records, because the Verifier page reads them. A command writes one document for each
study and device mode into ``FOLDER``; each says which gate set made it, where, and by what words.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from verifier.records import (
    GATE_SET_VERSION,
    VERIFIER_VERSION,
    CaseNote,
    DeviceMode,
    Environment,
    GateId,
    GateStatus,
    RecordError,
    from_json,
    to_json,
)
from verifier.statistics import Agreement, Share, cohen_kappa, wilson

FOLDER: Final = Path(__file__).parent / "data"
"""Where the commands store their studies by default."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a study comes from: what made it, by which words, on what."""

    command: str
    made_at: str
    duration_s: float
    environment: Environment
    seed: int
    gate_set: int = GATE_SET_VERSION
    verifier_version: str = VERIFIER_VERSION

    @property
    def current(self) -> bool:
        """Whether the gates that judge today are the ones that made this."""
        return self.gate_set == GATE_SET_VERSION


# --- the control sweep


class Control(StrEnum):
    """What is submitted as a kernel though nobody doubts it."""

    EAGER = "eager"
    COMPILE = "compile"


EXCEPTIONS: Final = frozenset({GateStatus.FAIL, GateStatus.INCONCLUSIVE, GateStatus.ERROR})
"""What a control must never get: it is right, so each of these is a fault of the gate."""


@dataclass(frozen=True, slots=True)
class ControlGate:
    """One gate's finding on one control. ``case`` names the case that failed, if one did."""

    gate: GateId
    status: GateStatus
    passed: int
    reason: str = ""
    case: str = ""
    notes: tuple[CaseNote, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One control on one task. ``error`` says why it was not judged at all, else ''."""

    suite: str
    task: str
    digest: str
    control: Control
    gates: tuple[ControlGate, ...]
    duration_s: float
    error: str = ""

    @property
    def exceptions(self) -> tuple[ControlGate, ...]:
        return tuple(one for one in self.gates if one.status in EXCEPTIONS)

    @property
    def clean(self) -> bool:
        """Judged, agreed with its reference, and accused of nothing."""
        passed = any(one.status is GateStatus.PASS for one in self.gates)
        return passed and not self.exceptions and not self.error


@dataclass(frozen=True, slots=True)
class ControlSweep:
    """Every control on every task. ``judged_as`` says what was changed in the contracts."""

    origin: Origin
    judged_as: str
    rows: tuple[ControlRow, ...]

    @property
    def exceptions(self) -> list[tuple[ControlRow, ControlGate]]:
        return [(row, one) for row in self.rows for one in row.exceptions]

    @property
    def unjudged(self) -> list[ControlRow]:
        return [row for row in self.rows if row.error]

    @property
    def clean(self) -> bool:
        return all(row.clean for row in self.rows)

    def counts(self, control: Control) -> dict[GateId, Counter[GateStatus]]:
        """By gate, how many tasks ended how for this control."""
        found: dict[GateId, Counter[GateStatus]] = {gate: Counter() for gate in GateId}
        for row in self.rows:
            for one in row.gates if row.control is control else ():
                found[one.gate][one.status] += 1
        return found

    def reasons(self, gate: GateId) -> Counter[str]:
        """Why the gate did not apply, with the number of controls, the most frequent first."""
        whole = (
            one.reason
            for row in self.rows
            for one in row.gates
            if one.gate is gate and one.status is GateStatus.NOT_APPLICABLE
        )
        return Counter(dict(Counter(whole).most_common()))


# --- defence 1


@dataclass(frozen=True, slots=True)
class PlantedRow:
    """One planted violator, and its honest twin.

    ``gate`` is the gate that must fail it; ``status`` and ``reason`` are what that gate said.
    ``not_here`` says why this device cannot show the fault, else ''. ``twin_accused`` names the
    gates that did anything but pass or not apply to the twin.
    """

    family: str
    kernel: str
    gate: GateId
    status: GateStatus
    reason: str
    hard: bool
    loose_accepted: bool | None
    twin_accused: tuple[str, ...]
    not_here: str = ""

    @property
    def caught(self) -> bool:
        return self.status is GateStatus.FAIL


@dataclass(frozen=True, slots=True)
class PositiveControl:
    """Seven planted violators, one for each hard family."""

    origin: Origin
    rows: tuple[PlantedRow, ...]

    @property
    def caught(self) -> int:
        return sum(row.caught for row in self.rows)

    @property
    def judged(self) -> int:
        return sum(not row.not_here for row in self.rows)

    @property
    def clean(self) -> bool:
        """Whatever can show here was caught, fooled the loose test, and no twin was accused."""
        shown = [row for row in self.rows if not row.not_here]
        return all(row.caught and row.loose_accepted for row in shown) and not any(
            row.twin_accused for row in self.rows
        )


# --- defence 2


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """What one soft rule (factor x eager's error + floor x rounding floor) rejects."""

    factor: float
    floor: float
    wrong: int
    wrong_rejected: int
    wrong_rejected_softly: int
    """Of them by the soft comparator alone: no exact finding would have."""
    controls: int
    controls_accused: int
    wrong_cases: int
    wrong_cases_failed: int
    control_cases: int
    control_cases_failed: int

    @property
    def recall(self) -> Share:
        return wilson(self.wrong_rejected, self.wrong)

    @property
    def false_positives(self) -> Share:
        return wilson(self.controls_accused, self.controls)


@dataclass(frozen=True, slots=True)
class Swayed:
    """A kernel whose rejection depends on the rule, and the points at which it is rejected."""

    kernel: str
    wrong: bool
    gates: tuple[str, ...]
    rejected_at: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ThresholdSweep:
    """The rejection curve of the soft comparator over a corpus of wrong kernels and controls."""

    origin: Origin
    corpora: tuple[str, ...]
    default: tuple[float, float]
    points: tuple[ThresholdPoint, ...]
    swayed: tuple[Swayed, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    def at(self, factor: float, floor: float) -> ThresholdPoint | None:
        found = (p for p in self.points if (p.factor, p.floor) == (factor, floor))
        return next(found, None)


# --- defence 3


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One kernel under both checks; None where a check could not be run, and why in its detail."""

    kernel: str
    task: str
    ours: bool | None
    theirs: bool | None
    ours_detail: str = ""
    theirs_detail: str = ""
    explanation: str = ""

    @property
    def judged(self) -> bool:
        return self.ours is not None and self.theirs is not None

    @property
    def agrees(self) -> bool:
        return self.judged and self.ours is self.theirs


@dataclass(frozen=True, slots=True)
class AgreementStudy:
    """Our literal KernelBench test beside its own code, on the same kernels in one run."""

    origin: Origin
    upstream: str
    trials: int
    rows: tuple[AgreementRow, ...]

    @property
    def judged(self) -> list[AgreementRow]:
        return [row for row in self.rows if row.judged]

    @property
    def disagreements(self) -> list[AgreementRow]:
        return [row for row in self.judged if not row.agrees]

    @property
    def share(self) -> Share:
        return wilson(sum(row.agrees for row in self.judged), len(self.judged))

    @property
    def agreement(self) -> Agreement:
        return cohen_kappa((row.ours, row.theirs) for row in self.judged)


# --- defence 4


class Judgement(StrEnum):
    """A reader's word on one sampled finding."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One sampled finding, with what the readers said, by reader."""

    id: str
    kernel: str
    task: str
    gate: GateId
    op_class: str
    verdict: GateStatus
    judgements: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def stratum(self) -> str:
        return f"{self.gate} · {self.op_class} · {self.verdict}"


@dataclass(frozen=True, slots=True)
class HandAudit:
    """A stratified sample of findings, read by people. ``population`` counts each stratum."""

    origin: Origin
    readers: tuple[str, ...]
    population: Mapping[str, int]
    items: tuple[AuditItem, ...]

    @property
    def settled(self) -> list[AuditItem]:
        """Items on which every reader spoke, and none was unsure."""
        return [item for item in self.items if self._words(item) and self._sure(item)]

    def _words(self, item: AuditItem) -> bool:
        return bool(self.readers) and set(item.judgements) == set(self.readers)

    def _sure(self, item: AuditItem) -> bool:
        return Judgement.UNSURE not in item.judgements.values()

    @property
    def errors(self) -> Share:
        """Findings that every reader calls wrong, of those that every reader judged."""
        wrong = sum(set(item.judgements.values()) == {Judgement.WRONG} for item in self.settled)
        return wilson(wrong, len(self.settled))

    def errors_by_verdict(self) -> dict[GateStatus, Share]:
        """The same for each verdict alone: false accusations and escapes are different errors."""
        return {
            verdict: wilson(
                sum(set(item.judgements.values()) == {Judgement.WRONG} for item in found),
                len(found),
            )
            for verdict in dict.fromkeys(item.verdict for item in self.settled)
            for found in [[item for item in self.settled if item.verdict is verdict]]
        }

    @property
    def agreement(self) -> Agreement:
        """Between the first two readers, over what both judged (being unsure is a word too)."""
        pair = self.readers[:2]
        both = [item for item in self.items if len(pair) == 2 and set(pair) <= set(item.judgements)]
        return cohen_kappa(tuple(item.judgements[name] for name in pair) for item in both)  # type: ignore[misc]

    @property
    def disputed(self) -> list[AuditItem]:
        return [item for item in self.items if len(set(item.judgements.values())) > 1]


# --- storage


Study = ControlSweep | PositiveControl | ThresholdSweep | AgreementStudy | HandAudit
AnyStudy = TypeVar(
    "AnyStudy", ControlSweep, PositiveControl, ThresholdSweep, AgreementStudy, HandAudit
)

NAMES: Final[Mapping[type, str]] = {
    ControlSweep: "control-sweep",
    PositiveControl: "positive-control",
    ThresholdSweep: "threshold-sweep",
    AgreementStudy: "agreement",
    HandAudit: "hand-audit",
}


def study_path(kind: type[Any], mode: DeviceMode, folder: Path = FOLDER) -> Path:
    """Where the latest study of this kind and device mode is stored."""
    return folder / f"{NAMES[kind]}-{mode.value}.json"


def store(study: Study, path: Path | None = None) -> Path:
    """Write a study, over the earlier one of its kind and mode; the path."""
    target = path or study_path(type(study), study.origin.environment.mode)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(study), indent=1, allow_nan=False, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")
    return target


def load(kind: type[AnyStudy], path: Path) -> AnyStudy:
    """Raises RecordError for what is no such study."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path.name}: {error}") from error
    return from_json(kind, document)


def stored(kind: type[AnyStudy], folder: Path = FOLDER) -> list[AnyStudy]:
    """The stored studies of this kind, that of a real device first; none where none was made.

    Raises RecordError for a document that does not fit.
    """
    paths: Iterable[Path] = (study_path(kind, mode, folder) for mode in DeviceMode)
    return list(_existing(kind, paths))


def _existing(kind: type[AnyStudy], paths: Iterable[Path]) -> Iterator[AnyStudy]:
    for path in paths:
        if path.exists():
            yield load(kind, path)
