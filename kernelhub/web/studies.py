"""The stored studies of the verifier itself, as the Verifier page shows them.

The commands of the verifier write them as JSON; here they are read, worded and never computed
anew. A document that does not fit is told as such beside the others, and breaks no page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from kernelhub.web.catalogue import GATES, LOOKS, GatePage
from kernelhub.web.figures import FigureJson, RulePoint, figure_json, threshold_figure
from kernelhub.web.present import plural
from verifier import studies
from verifier.records import DeviceMode, GateId, GateStatus, RecordError
from verifier.statistics import Share
from verifier.studies import (
    AgreementStudy,
    AnyStudy,
    Control,
    ControlSweep,
    HandAudit,
    Origin,
    PositiveControl,
    ThresholdSweep,
)

Study = TypeVar("Study")


@dataclass(frozen=True, slots=True)
class Shown(Generic[Study]):
    """One stored study with its finding in a sentence; ``rows`` and ``figure`` are its evidence."""

    study: Study
    origin: Origin
    sentence: str
    good: bool
    rows: Sequence[Any] = ()
    figure: FigureJson | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def chart(self) -> str:
        """The name of this study's figure on the page."""
        return f"thresholds-{self.origin.environment.mode.value}"

    @property
    def made(self) -> datetime | None:
        """When it was made; None where the document holds no time."""
        try:
            moment = datetime.fromisoformat(self.origin.made_at)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def where(self) -> str:
        environment = self.origin.environment
        on_gpu = environment.mode is DeviceMode.CUDA
        return environment.device_name if on_gpu else "Triton's interpreter, no GPU"


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of study: what it asks, how it is made, what is stored of it."""

    anchor: str
    title: str
    asks: str
    command: str
    shown: Sequence[Shown[Any]] = ()
    problem: str = ""


TASKS: Final = "benchmarks/fuzzoracle"
FOLDER: Path = studies.FOLDER


def sections() -> list[Section]:
    """The control sweep and the four defences, in the order of the page; at most ten files."""
    return [
        _section(
            "control-sweep",
            "Control sweep",
            "Is anybody accused who is right? Eager and torch.compile are submitted as kernels.",
            f"-m verifier selfcheck --suite-dir {TASKS}/tasks",
            ControlSweep,
            _control_sweep,
        ),
        _section(
            "positive-control",
            "Defence 1: planted violators",
            "Is every kind of fault found? One violator and its honest twin for each hard family.",
            "-m verifier defend positive",
            PositiveControl,
            _positive_control,
        ),
        _section(
            "threshold-sweep",
            "Defence 2: other thresholds",
            "Do verdicts hang on the tolerances? The soft comparator under other rules.",
            f"-m verifier defend thresholds --suite-dir {TASKS}",
            ThresholdSweep,
            _threshold_sweep,
        ),
        _section(
            "agreement",
            "Defence 3: agreement with KernelBench",
            "Is the loose test really the field's? Ours beside KernelBench's own code, on a GPU.",
            f"-m verifier defend agreement --suite-dir {TASKS} --kernelbench ../KernelBench",
            AgreementStudy,
            _agreement,
        ),
        _section(
            "hand-audit",
            "Defence 4: read by hand",
            "Do people agree with the verdicts? Two read a stratified sample of findings.",
            "-m verifier defend audit export verdicts.jsonl --out sample",
            HandAudit,
            _hand_audit,
        ),
    ]


def _section(
    anchor: str,
    title: str,
    asks: str,
    command: str,
    kind: type[AnyStudy],
    show: Callable[[AnyStudy], Shown[AnyStudy]],
) -> Section:
    try:
        found = studies.stored(kind, FOLDER)
    except RecordError as error:
        return Section(anchor, title, asks, command, problem=str(error))
    return Section(anchor, title, asks, command, [show(one) for one in found])


# --- the control sweep


@dataclass(frozen=True, slots=True)
class GateCounts:
    """One row of the sweep's table: a gate, and how many tasks ended how under each control."""

    page: GatePage
    cells: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        return f"{self.page.number} {self.page.short}"

    @property
    def anchor(self) -> str:
        return self.page.anchor


def _control_sweep(study: ControlSweep) -> Shown[ControlSweep]:
    controls = [one for one in Control if any(row.control is one for row in study.rows)]
    counts = {one: study.counts(one) for one in controls}
    rows = [
        GateCounts(
            page,
            tuple(
                (counts[one][page.id][status], LOOKS[status].css)
                for one in controls
                for status in COLUMNS
            ),
        )
        for page in GATES
    ]
    reasons = [
        (gate, reason, count) for gate in GateId for reason, count in study.reasons(gate).items()
    ]
    extra = {"controls": controls, "columns": COLUMNS, "reasons": reasons}
    return Shown(study, study.origin, _sweep_words(study), study.clean, rows, extra=extra)


COLUMNS: Final = (
    GateStatus.PASS,
    GateStatus.FAIL,
    GateStatus.NOT_APPLICABLE,
    GateStatus.INCONCLUSIVE,
    GateStatus.ERROR,
)


def _sweep_words(study: ControlSweep) -> str:
    tasks = len({(row.suite, row.task) for row in study.rows})
    judged = f"{plural(len(study.rows), 'control')} on {plural(tasks, 'task')}"
    accusations = len(study.exceptions)
    if study.unjudged:
        return f"{judged}; {plural(len(study.unjudged), 'control')} could not be judged."
    if accusations:
        return f"{judged}; {plural(accusations, 'finding')} against kernels that are right."
    return f"{judged}, and none is accused of anything."


# --- the defences


def _positive_control(study: PositiveControl) -> Shown[PositiveControl]:
    left = len(study.rows) - study.judged
    words = f"{study.caught} of {study.judged} planted violators are caught"
    words += f"; {plural(left, 'fault')} cannot show on this device." if left else "."
    return Shown(study, study.origin, words, study.clean, study.rows)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One factor's row of the grid; each cell holds what is rejected, or is blank."""

    factor: float
    cells: tuple[tuple[str, bool, bool], ...]
    """(text, whether a control is accused, whether it is the rule in use) for each floor."""


def _threshold_sweep(study: ThresholdSweep) -> Shown[ThresholdSweep]:
    floors = sorted({point.floor for point in study.points})
    rows = [
        RuleRow(factor, tuple(_rule_cell(study, factor, floor) for floor in floors))
        for factor in sorted({point.factor for point in study.points})
    ]
    figure = figure_json(threshold_figure(_curve(study), study.default[0]))
    at = study.at(*study.default)
    good = at is not None and at.controls_accused == 0
    words = _threshold_words(study)
    return Shown(study, study.origin, words, good, rows, figure, {"floors": floors})


def _rule_cell(study: ThresholdSweep, factor: float, floor: float) -> tuple[str, bool, bool]:
    point = study.at(factor, floor)
    if point is None:
        return "", False, False
    text = f"{point.wrong_rejected}, {point.controls_accused}"
    return text, point.controls_accused > 0, (factor, floor) == study.default


def _curve(study: ThresholdSweep) -> list[RulePoint]:
    """The points at the floor in use, by factor."""
    chosen = [point for point in study.points if point.floor == study.default[1]]
    return [
        RulePoint(point.factor, point.recall, point.false_positives)
        for point in sorted(chosen, key=lambda point: point.factor)
    ]


def _threshold_words(study: ThresholdSweep) -> str:
    at = study.at(*study.default)
    if at is None:
        return "The rule in use is not among those tried."
    moved = len(study.swayed)
    return (
        f"The rule in use rejects {at.wrong_rejected} of {at.wrong} wrong kernels and accuses "
        f"{at.controls_accused} of {at.controls} controls; the rule decides on "
        f"{plural(moved, 'kernel')}, the others end the same under each of the "
        f"{plural(len(study.points), 'rule')} tried."
    )


def _agreement(study: AgreementStudy) -> Shown[AgreementStudy]:
    found, share = study.agreement, study.share
    if share.share is None:
        return Shown(study, study.origin, "Nothing was compared.", False, study.rows)
    words = f"The two agree on {share_words(share)} of the kernels"
    if found.kappa is not None and found.low is not None and found.high is not None:
        words += f"; kappa {found.kappa:.3f}, 95% {found.low:.3f} to {found.high:.3f}"
    explained = all(row.explanation for row in study.disagreements)
    return Shown(study, study.origin, f"{words}.", explained, study.disagreements)


def _hand_audit(study: HandAudit) -> Shown[HandAudit]:
    found, errors = study.agreement, study.errors
    words = f"{share_words(errors)} of the findings that both readers judged are wrong"
    if errors.share is None:
        words = f"{plural(len(study.items), 'finding')} sampled, none judged by both readers yet"
    if found.kappa is not None and found.low is not None and found.high is not None:
        words += f"; between the readers kappa {found.kappa:.3f}, "
        words += f"95% {found.low:.3f} to {found.high:.3f}"
    rows = list(study.errors_by_verdict().items())
    settled = errors.share is not None and not study.disputed
    return Shown(study, study.origin, f"{words}.", settled, [(v, share_words(s)) for v, s in rows])


def share_words(share: Share) -> str:
    """'98.5% (95% 94.1% to 99.6%, n = 94)'."""
    if share.share is None or share.low is None or share.high is None:
        return "none"
    interval = f"{share.low:.1%} to {share.high:.1%}"
    return f"{share.share:.1%} ({share.confidence:.0%} {interval}, n = {share.n})"
