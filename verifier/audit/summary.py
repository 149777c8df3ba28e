"""Counting an audit: from rows to shares with intervals. Nothing here knows a corpus by name.

A kernel is *broken* when some tolerance-free finding failed (a crash, a wrong shape, NaN
swallowed, memory written that is not its own), *in violation* when any gate failed, *undecided*
when none failed and something stayed open. What holds no kernel of its own, and what could not be
judged, is counted apart and enters no share of kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from verifier.audit.corpus import CorpusKernel
from verifier.audit.results import Row
from verifier.records import NOT_ASKED, GateId, GateStatus, Outcome, Verdict
from verifier.statistics import Paired, Share, mcnemar, wilson
from verifier.wording import in_one_line

REASONS: Final = 12
"""So many different reasons are listed; the rest is counted together."""

REASON_WIDTH: Final = 110
_TRIAL: Final = re.compile(r"trial \d+ of \d+: (\w+)")
_NOT_RUN: Final = frozenset(
    {"raised", "load_failed", "bad_output", "crashed", "timed_out", "memory", "unsupported"}
)
"""How a call ends that brings no outputs, as the loose test words it (ReplyKind's values)."""


@dataclass(frozen=True, slots=True)
class GateCount:
    """One gate over all kernels. ``alone`` counts kernels that no other gate rejects."""

    gate: GateId
    passed: int
    failed: int
    hard: int
    alone: int
    not_applicable: int
    inconclusive: int
    error: int
    share: Share
    """Failed, of those on which the gate came to a judgement."""


@dataclass(frozen=True, slots=True)
class TwoByTwo:
    """The loose test beside the verifier, on kernels that the loose test could judge."""

    both_accept: int
    only_loose: int
    """Illusions: the loose test accepts, the verifier rejects."""
    only_verifier: int
    neither: int
    left_out: int
    """Kernels on which there is no loose result."""
    test: Paired


@dataclass(frozen=True, slots=True)
class Slice:
    """The kernels of one category, author or kind of content."""

    name: str
    n: int
    broken: Share
    violation: Share
    illusions: Share
    """Rejected by the verifier, of those that the loose test accepts."""
    undecided: int


@dataclass(frozen=True, slots=True)
class Group:
    """The counts of all judged kernels, or of all judged compositions of library calls."""

    n: int
    ran: int
    """Kernels that returned at least once in the loose test."""
    accepted: int
    rejected: int
    undecided: int
    broken: Share
    violation: Share
    broken_of_ran: Share
    violation_of_ran: Share
    broken_of_loose: Share
    violation_of_loose: Share
    table: TwoByTwo
    gates: tuple[GateCount, ...]
    inconclusive: Share
    """Kernels with at least one INCONCLUSIVE gate."""
    inconclusive_reasons: tuple[tuple[str, int], ...]
    categories: tuple[Slice, ...]
    authors: tuple[Slice, ...]
    contents: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole audit. ``kernels`` and ``library`` share nothing."""

    corpora: tuple[str, ...]
    in_corpus: int
    not_judged: tuple[tuple[str, int], ...]
    """Why kernels of the corpus were not judged, and how many for each reason."""
    left: int
    """Kernels that could be judged and have no row yet, or were not chosen."""
    task_errors: tuple[tuple[str, int], ...]
    errors: tuple[tuple[str, int], ...]
    """Our machinery broke, twice; the kernels have no part in it."""
    kernels: Group
    library: Group
    environments: tuple[str, ...]
    verifier: tuple[str, ...]
    retried: int = 0
    seconds: float = 0.0
    """Time spent in verifiers, all workers together."""
    worker_rss_mib: tuple[int, int] = (0, 0)
    """Median memory of a judging process in the first and in the last tenth of the rows."""


def summarise(kernels: Iterable[CorpusKernel], rows: Iterable[Row]) -> Summary:
    """The summary of an audit. A row whose kernel is not in the corpus counts all the same."""
    corpus, kept = list(kernels), list(rows)
    done = {row.key for row in kept}
    judged = [row for row in kept if row.verdict is not None]
    return Summary(
        corpora=tuple(sorted({one.corpus for one in corpus} | {row.corpus for row in kept})),
        in_corpus=len(corpus),
        not_judged=_reasons(one.problem for one in corpus if one.problem),
        left=sum(not one.problem and one.key not in done for one in corpus),
        task_errors=_reasons(row.error for row in kept if row.error_kind == "task"),
        errors=_reasons(row.error for row in kept if row.error_kind == "infrastructure"),
        kernels=_group([row for row in judged if row.content.is_kernel]),
        library=_group([row for row in judged if not row.content.is_kernel]),
        environments=tuple(sorted({_environment(v) for v in _verdicts(judged)})),
        verifier=tuple(sorted({_version(v) for v in _verdicts(judged)})),
        retried=sum(row.attempt > 1 for row in kept),
        seconds=round(sum(row.seconds for row in kept), 1),
        worker_rss_mib=_memory(judged),
    )


def _verdicts(rows: Iterable[Row]) -> list[Verdict]:
    return [row.verdict for row in rows if row.verdict is not None]


def _environment(verdict: Verdict) -> str:
    where = verdict.environment
    device = f"{where.device_name} ({where.capability or where.mode.value})"
    return f"{device}, torch {where.torch}, triton {where.triton}, Python {where.python}"


def _version(verdict: Verdict) -> str:
    return f"verifier {verdict.verifier_version}, gate set {verdict.gate_set}"


def _reasons(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The most frequent reasons, each in one line, then the others together."""
    counted = Counter(in_one_line(text, REASON_WIDTH) or "no reason" for text in texts)
    first = counted.most_common(REASONS)
    rest = counted.total() - sum(count for _, count in first)
    return (*first, *([("other reasons", rest)] if rest else []))


def _memory(rows: list[Row]) -> tuple[int, int]:
    known = [row.worker_rss_mib for row in rows if row.worker_rss_mib]
    if not known:
        return (0, 0)
    tenth = max(len(known) // 10, 1)
    first, last = sorted(known[:tenth]), sorted(known[-tenth:])
    return (first[len(first) // 2], last[len(last) // 2])


# --- one kernel


def loose_accepts(verdict: Verdict) -> bool | None:
    """What the loose test says; None where it could not be run on this device."""
    if verdict.loose is None or _loose_end(verdict) == "unsupported":
        return None
    return verdict.loose.accepted


def _loose_end(verdict: Verdict) -> str:
    found = _TRIAL.match(verdict.loose.detail) if verdict.loose else None
    return found[1] if found and found[1] in _NOT_RUN else ""


def ran(verdict: Verdict) -> bool:
    """Whether the kernel returned from a call of the loose test, or passed a case of gate 1."""
    return verdict.gates[0].passed > 0 or (verdict.loose is not None and not _loose_end(verdict))


def _rejected(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.REJECTED


def _undecided(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.UNDECIDED


# --- many kernels


def _share(verdicts: list[Verdict], hit: Callable[[Verdict], bool]) -> Share:
    return wilson(sum(map(hit, verdicts)), len(verdicts))


def _hard(verdict: Verdict) -> bool:
    return verdict.hard


def _group(rows: list[Row]) -> Group:
    verdicts = _verdicts(rows)
    running = [verdict for verdict in verdicts if ran(verdict)]
    accepted = [verdict for verdict in verdicts if loose_accepts(verdict)]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    return Group(
        n=len(verdicts),
        ran=len(running),
        accepted=outcomes[Outcome.ACCEPTED],
        rejected=outcomes[Outcome.REJECTED],
        undecided=outcomes[Outcome.UNDECIDED],
        broken=_share(verdicts, _hard),
        violation=_share(verdicts, _rejected),
        broken_of_ran=_share(running, _hard),
        violation_of_ran=_share(running, _rejected),
        broken_of_loose=_share(accepted, _hard),
        violation_of_loose=_share(accepted, _rejected),
        table=_two_by_two(verdicts),
        gates=tuple(_gate(verdicts, gate) for gate in GateId),
        inconclusive=_share(verdicts, lambda verdict: bool(_open_reasons(verdict))),
        inconclusive_reasons=_reasons(
            reason for verdict in verdicts for reason in _open_reasons(verdict)
        ),
        categories=_slices(rows, lambda row: row.category),
        authors=_slices(rows, lambda row: row.author),
        contents=_slices(rows, lambda row: row.content.value),
    )


def _two_by_two(verdicts: list[Verdict]) -> TwoByTwo:
    cells = Counter((loose_accepts(verdict), _rejected(verdict)) for verdict in verdicts)
    only_loose, only_verifier = cells[True, True], cells[False, False]
    return TwoByTwo(
        both_accept=cells[True, False],
        only_loose=only_loose,
        only_verifier=only_verifier,
        neither=cells[False, True],
        left_out=cells[None, True] + cells[None, False],
        test=mcnemar(only_loose, only_verifier),
    )


def _gate(verdicts: list[Verdict], gate: GateId) -> GateCount:
    index = gate.number - 1
    results = [verdict.gates[index] for verdict in verdicts]
    found = Counter(result.status for result in results)
    failed = found[GateStatus.FAIL]
    return GateCount(
        gate=gate,
        passed=found[GateStatus.PASS],
        failed=failed,
        hard=sum(result.hard for result in results),
        alone=sum(_failed_gates(verdict) == [gate] for verdict in verdicts),
        not_applicable=found[GateStatus.NOT_APPLICABLE],
        inconclusive=found[GateStatus.INCONCLUSIVE],
        error=found[GateStatus.ERROR],
        share=wilson(failed, failed + found[GateStatus.PASS]),
    )


def _failed_gates(verdict: Verdict) -> list[GateId]:
    return [result.gate for result in verdict.gates if result.status is GateStatus.FAIL]


def _open_reasons(verdict: Verdict) -> list[str]:
    return [
        f"{result.gate.value}: {result.reason}"
        for result in verdict.gates
        if result.status is GateStatus.INCONCLUSIVE and result.reason != NOT_ASKED
    ]


def _slices(rows: list[Row], name: Callable[[Row], str]) -> tuple[Slice, ...]:
    groups: dict[str, list[Verdict]] = {}
    for row in rows:
        if row.verdict is not None:
            groups.setdefault(name(row) or "unnamed", []).append(row.verdict)
    return tuple(_slice(name, groups[name]) for name in sorted(groups))


def _slice(name: str, verdicts: list[Verdict]) -> Slice:
    loose = [verdict for verdict in verdicts if loose_accepts(verdict)]
    return Slice(
        name=name,
        n=len(verdicts),
        broken=_share(verdicts, _hard),
        violation=_share(verdicts, _rejected),
        illusions=_share(loose, _rejected),
        undecided=sum(map(_undecided, verdicts)),
    )
