"""What a gate is: a protocol, the finding that it returns, and nothing of any one gate.

A gate is a stateless object. ``cases`` says what to try, as plain data; ``judge`` tries one case on
a subject and returns a Finding. The pipeline puts eager through ``judge`` first (the reference is
on trial too), records the digests of every call, minimises a failing case and adds the findings
up. ``judge`` must be a pure function of the bench's contract, the case and the subject: that is
what makes a failure replay from its seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from verifier.records import CaseRecord, GateInfo, GateStatus, TensorSlice
from verifier.subject import Subject

if TYPE_CHECKING:
    from verifier.referee.bench import Bench


@dataclass(frozen=True, slots=True)
class Finding:
    """What one case showed. ``hard`` marks a failure in which no tolerance had a part."""

    status: GateStatus
    detail: str = ""
    hard: bool = False
    output: str = ""
    index: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    slices: tuple[TensorSlice, ...] = ()
    refused_at: Mapping[str, int] | None = None
    """The sizes of the call that the kernel refused, where that left the case unjudged."""

    @property
    def failed(self) -> bool:
        return self.status is GateStatus.FAIL

    @property
    def passed(self) -> bool:
        return self.status is GateStatus.PASS


def passed(detail: str = "") -> Finding:
    return Finding(GateStatus.PASS, detail)


def failed(detail: str, *, hard: bool = True) -> Finding:
    return Finding(GateStatus.FAIL, detail, hard)


def not_applicable(reason: str) -> Finding:
    return Finding(GateStatus.NOT_APPLICABLE, reason)


def inconclusive(reason: str) -> Finding:
    return Finding(GateStatus.INCONCLUSIVE, reason)


MAX_EVIDENCE: Final = 8
"""So many things that passed cases saw stand in one result."""


def summary(status: GateStatus, passed: int, failed: int) -> str:
    """A few words for the gate strip."""
    if failed:
        return f"{failed} of {passed + failed} cases"
    if not passed:
        return "not applicable" if status is GateStatus.NOT_APPLICABLE else "undecided"
    return f"{passed} case{'s' if passed > 1 else ''}"


class Gate(Protocol):
    """One property that a correct kernel must satisfy."""

    info: GateInfo
    self_check: bool
    """Whether eager goes through ``judge`` before the kernel does, on each case. Off only where the
    question makes no sense for eager (did the submitted kernel do the work?)."""

    def applies(self, bench: Bench) -> str | None:
        """None, or the reason why this gate has nothing to say about this task or device."""

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        """What to try, most telling first; made with ``bench.case``."""

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Try one case on one subject."""
