"""The first page: what was judged, and how often the loose test is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from kernelhub.core.models import Run
from kernelhub.core.selectors import (
    CampaignProgress,
    LooseVsGates,
    illusion_rows,
    overview_counts,
)
from kernelhub.web import selectors
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import GATES, GatePage
from kernelhub.web.figures import GateCount, figure_json, gate_figure
from kernelhub.web.present import (
    counted_words,
    plural,
    rate_sentence,
    submitted_words,
)
from kernelhub.web.rows import listed_runs
from kernelhub.web.selectors import GateTotals, Origin
from kernelhub.web.text import reason_line

RECENT = 12
CASES = 5
BAR_UNITS = 1000
NOUNS: Final = {Origin.CORPUS: "corpus kernel", Origin.SUBMITTED: "submitted kernel"}


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a progress bar, in thousandths of its length."""

    css: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class CampaignBar:
    """A campaign as a bar and as words."""

    pk: UUID
    title: str
    total: int
    done: int
    words: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class GateRow:
    page: GatePage
    illusions: int
    others: int


@dataclass(frozen=True, slots=True)
class Case:
    """A run that the loose test let by, and the first gate's reason."""

    run: Run
    why: str


@require_GET
@readers_only
def overview(request: HttpRequest) -> HttpResponseBase:
    counts = overview_counts()
    judged = {origin: selectors.loose_vs_gates(origin) for origin in Origin}
    origin = shown_origin(judged)
    two, noun = judged[origin], NOUNS[origin]
    totals = selectors.gate_totals(origin)
    context = {
        "sentence": headline(two, counts.runs.total, noun),
        "apart": submitted_words(judged[Origin.SUBMITTED]) if origin is Origin.CORPUS else "",
        "counts": counts,
        "two": two,
        "noun": noun,
        "counted": counted_words(two, noun),
        "campaigns": [campaign_bar(progress) for progress in selectors.campaigns_shown()],
        "gate_counts": gate_rows(totals),
        "figure": figure_json(gate_figure(gate_counts(totals))),
        "runs": listed_runs(selectors.recent_runs(RECENT)),
        "illusions": [Case(verdict.run, why(verdict)) for verdict in illusion_rows(limit=CASES)],
    }
    return render(request, "web/overview.html", context)


def why(verdict: Any) -> str:
    """The finding that needed no tolerance, else the first one."""
    failed = sorted(verdict.failed_gates, key=lambda row: not row.hard)
    return f"gate {failed[0].number}: {reason_line(failed[0].reason, 90)}" if failed else ""


def shown_origin(judged: Mapping[Origin, LooseVsGates]) -> Origin:
    """The corpus, except on a hub where nothing but submitted kernels was judged."""
    alone = judged[Origin.SUBMITTED].judged and not judged[Origin.CORPUS].judged
    return Origin.SUBMITTED if alone else Origin.CORPUS


def headline(two: LooseVsGates, runs: int, noun: str) -> str:
    if not runs:
        return "No kernel has been judged yet."
    return rate_sentence(two.illusions, two.loose_accepted, noun)


def gate_counts(totals: Mapping[str, GateTotals]) -> list[GateCount]:
    return [
        GateCount(gate, found.illusions, found.failed - found.illusions)
        for gate, found in totals.items()
    ]


def gate_rows(totals: Mapping[str, GateTotals]) -> list[GateRow]:
    """The chart's figures as a table, in the order of the gates."""
    counts = {count.gate: count for count in gate_counts(totals)}
    empty = GateCount("", 0, 0)
    found = [(gate, counts.get(gate.id, empty)) for gate in GATES]
    return [GateRow(gate, count.illusions, count.others) for gate, count in found]


def campaign_bar(progress: CampaignProgress) -> CampaignBar:
    """Verdicts by outcome, then what broke, what runs and what waits."""
    runs, verdicts = progress.runs, progress.verdicts
    stretches = {
        "pass": verdicts.accepted,
        "fail": verdicts.rejected,
        "maybe": verdicts.undecided,
        "error": runs.errored + runs.cancelled,
        "run": runs.running,
    }
    return CampaignBar(
        pk=progress.campaign.pk,
        title=progress.campaign.title,
        total=runs.total,
        done=runs.ended,
        words=_campaign_words(progress),
        parts=_parts(stretches, max(1, runs.total)),
    )


def _parts(stretches: Mapping[str, int], total: int) -> tuple[Part, ...]:
    widths = [round(BAR_UNITS * count / total, 2) for count in stretches.values()]
    starts = [0.0, *accumulate(widths)]
    return tuple(
        Part(css, start, width)
        for css, start, width in zip(stretches, starts, widths, strict=False)
        if width
    )


def _campaign_words(progress: CampaignProgress) -> str:
    runs, verdicts = progress.runs, progress.verdicts
    parts: list[tuple[int, str]] = [
        (verdicts.accepted, "accepted"),
        (verdicts.rejected, "rejected"),
        (verdicts.undecided, "undecided"),
        (runs.errored, "errored"),
        (runs.cancelled, "cancelled"),
        (runs.running, "running"),
        (runs.queued, "waiting"),
    ]
    said = ", ".join(f"{count:,} {word}" for count, word in parts if count)
    return f"{runs.ended:,} of {plural(runs.total, 'run')} done: {said}"
