"""What a page says about a run: twelve cells and one sentence. Pure functions, no queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kernelhub.core.selectors import LooseVsGates
from kernelhub.web.catalogue import BY_ID, GATES, LOOKS, RUNNING, WAITING, GatePage, Look
from kernelhub.web.text import reason_line
from verifier.records import GateId, GateStatus, Outcome


class GateLike(Protocol):
    """A gate's finding: a stored GateResult row, or one read out of an event."""

    @property
    def gate(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def hard(self) -> bool: ...
    @property
    def summary(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A gate's finding out of an event's payload, which may lack fields of later versions."""

    gate: str
    status: str
    hard: bool = False
    summary: str = ""
    reason: str = ""
    passed: int = 0
    failed: int = 0

    @classmethod
    def from_payload(cls, payload: Mapping[str, object]) -> Finding:
        return cls(
            gate=str(payload.get("gate", "")),
            status=str(payload.get("status", "")),
            hard=payload.get("hard") is True,
            summary=str(payload.get("summary", "")),
            reason=str(payload.get("reason", "")),
            passed=_count(payload.get("passed")),
            failed=_count(payload.get("failed")),
        )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the strip, or one mark of a row."""

    gate: GatePage
    look: Look
    fact: str = ""
    why: str = ""
    hard: bool = False

    @property
    def label(self) -> str:
        """What a screen reader says."""
        tail = f": {self.why}" if self.why else ""
        return f"Gate {self.gate.number}, {self.gate.short}, {self.look.word}{tail}"


def cells(findings: Iterable[GateLike], running: str | None = None) -> tuple[Cell, ...]:
    """The twelve cells in their order; gates without a finding are waiting, or running."""
    found = {finding.gate: finding for finding in findings}
    return tuple(_cell(page, found.get(page.id), running == page.id) for page in GATES)


def _cell(page: GatePage, finding: GateLike | None, running: bool) -> Cell:
    if finding is None:
        return Cell(page, RUNNING if running else WAITING)
    look = LOOKS[GateStatus(finding.status)]
    why = reason_line(finding.reason or finding.summary, 300)
    return Cell(page, look, _fact(finding), why, finding.hard)


class StatusLike(Protocol):
    """As much of a finding as a row of marks needs."""

    @property
    def gate(self) -> str: ...
    @property
    def status(self) -> str: ...


def marks(findings: Iterable[StatusLike]) -> tuple[Cell, ...]:
    """The twelve marks of a table row: states alone, so that lists need not load any text."""
    looks = {finding.gate: LOOKS[GateStatus(finding.status)] for finding in findings}
    return tuple(Cell(page, looks.get(page.id, WAITING)) for page in GATES)


def _fact(finding: GateLike) -> str:
    """The few words that fit in a cell."""
    judged = finding.passed + finding.failed
    if finding.status == GateStatus.FAIL and judged:
        return f"{finding.failed} of {plural(judged, 'case')}"
    if finding.status == GateStatus.PASS:
        return plural(finding.passed, "case")
    return reason_line(finding.reason or finding.summary, 60)


_STATUSES: Final = (
    GateStatus.FAIL,
    GateStatus.ERROR,
    GateStatus.INCONCLUSIVE,
    GateStatus.NOT_APPLICABLE,
)
NAMED: Final = (*(LOOKS[status].word for status in _STATUSES), RUNNING.word)
"""States in which a row names its gates; in the others it counts them."""
COUNTED: Final = (LOOKS[GateStatus.PASS].word, WAITING.word)


def row_label(marks: Sequence[Cell]) -> str:
    """The row in words: 'fail: 2 Non-finite, 10 Range; not applicable: 6 Accumulation; pass: 9'."""
    groups: dict[str, list[Cell]] = {}
    for mark in marks:
        groups.setdefault(mark.look.word, []).append(mark)
    parts = [f"{word}: {_names(groups[word])}" for word in NAMED if word in groups]
    parts += [f"{word}: {len(groups[word])}" for word in COUNTED if word in groups]
    return "; ".join(parts)


def _names(marks: Sequence[Cell]) -> str:
    return ", ".join(f"{mark.gate.number} {mark.gate.short}" for mark in marks)


def plural(count: int, noun: str, many: str = "") -> str:
    """'1 case', '1,204 cases', '2 entries'."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def verdict_sentence(outcome: str, findings: Sequence[GateLike], loose: bool | None) -> str:
    """What the judges found, in words that a person would say."""
    if outcome == Outcome.REJECTED:
        return _rejected(findings, loose)
    if outcome == Outcome.ACCEPTED:
        return _accepted(findings, loose)
    return _undecided(findings, loose)


def _loose_words(loose: bool | None, agrees: str, differs: str) -> str:
    return "The loose test was not run" if loose is None else agrees if loose else differs


def _rejected(findings: Sequence[GateLike], loose: bool | None) -> str:
    failed = [finding for finding in findings if finding.status == GateStatus.FAIL]
    hard = sum(finding.hard for finding in failed)
    start = {
        True: "The loose test accepts this kernel; ",
        False: "The loose test rejects this kernel too: ",
        None: "",
    }[loose]
    verb = "gate rejects it" if len(failed) == 1 else "gates reject it"
    count = COUNT_WORDS.get(len(failed), str(len(failed)))
    text = f"{start}{count} {verb}{_hard_words(hard, len(failed))}."
    return text[0].upper() + text[1:]


COUNT_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
COUNT_WORDS |= {8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "all twelve"}


def _hard_words(hard: int, failed: int) -> str:
    if not hard:
        return ", within the reach of a tolerance"
    if hard == failed:
        return ", and no tolerance had a part in it" if failed == 1 else ", all without a tolerance"
    return f", {COUNT_WORDS[hard]} of them without a tolerance"


def _accepted(findings: Sequence[GateLike], loose: bool | None) -> str:
    passed = sum(finding.status == GateStatus.PASS for finding in findings)
    absent = sum(finding.status == GateStatus.NOT_APPLICABLE for finding in findings)
    start = "All twelve gates pass" if passed == 12 else f"{plural(passed, 'gate')} pass"
    middle = f" and {absent} {'does' if absent == 1 else 'do'} not apply" if absent else ""
    end = _loose_words(loose, "the loose test accepts it as well", "yet the loose test rejects it")
    return f"{start}{middle}; {end[0].lower()}{end[1:]}."


def _undecided(findings: Sequence[GateLike], loose: bool | None) -> str:
    unsure = (GateStatus.INCONCLUSIVE, GateStatus.ERROR)
    still = [finding for finding in findings if finding.status in unsure]
    if not still:
        return "Nothing failed, but no gate could judge this kernel here."
    names = listed(
        [f"{BY_ID[GateId(one.gate)].number} {BY_ID[GateId(one.gate)].short}" for one in still]
    )
    verb = "gate stays" if len(still) == 1 else "gates stay"
    return f"Nothing failed, but {len(still)} {verb} open: {names}. Open is not passed."


def rate_sentence(illusions: int, loose_accepted: int, noun: str = "kernel") -> str:
    """The illusion rate in one sentence, with its two counts and never a bare percentage.

    ``noun`` says over which kernels: 'corpus kernel', 'submitted kernel'.
    """
    if not loose_accepted:
        return f"The loose test has accepted no {noun} yet, so there is no illusion rate."
    if not illusions:
        return f"None of the {plural(loose_accepted, noun)} that the loose test accepts is wrong."
    share = illusions / loose_accepted
    low, high = wilson(illusions, loose_accepted)
    is_are = "is" if illusions == 1 else "are"
    return (
        f"{illusions:,} of the {plural(loose_accepted, noun)} that the loose test accepts "
        f"{is_are} wrong: {share:.0%} (95% interval {low:.0%} to {high:.0%})."
    )


def counted_words(two: LooseVsGates, noun: str) -> str:
    """Which kernels a table counts and what it leaves out: '38 corpus kernels, each by ...'."""
    left_out = listed(
        [
            *([f"{two.undecided} undecided"] if two.undecided else []),
            *([f"{two.unmeasured} without a loose test"] if two.unmeasured else []),
        ]
    )
    tail = f"; left out: {left_out}" if left_out else ""
    return f"{plural(two.judged, noun)} judged, each by its latest verdict{tail}."


def submitted_words(two: LooseVsGates) -> str:
    """What became of submitted kernels, which no figure of the corpus counts; '' without any."""
    if not two.judged:
        return ""
    open_count = two.undecided + two.unmeasured
    counts = [
        (two.accepted, "accepted"),
        (two.rejected, f"rejected, {two.illusions} of them accepted by the loose test"),
        (open_count, "undecided or without a loose test"),
    ]
    said = "; ".join(f"{count:,} {word}" for count, word in counts if count)
    return f"Submitted kernels are counted apart: {two.judged:,} judged; {said}."


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a proportion (E. B. Wilson, JASA 22, 1927)."""
    share = hits / n
    centre = share + z * z / (2 * n)
    spread = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
