"""The list of runs: filters in the URL, keyset pages, exports of the very same filter."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.datastructures import MultiValueDict
from django.views.decorators.http import require_GET

from kernelhub.core.choices import AuthorKind, RunStatus
from kernelhub.core.models import Run
from kernelhub.core.selectors import (
    CursorError,
    RunCounts,
    RunFilters,
    RunOrder,
    RunPage,
    VerdictCounts,
    run_list,
)
from kernelhub.web import selectors
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import GATES
from kernelhub.web.present import plural
from kernelhub.web.rows import listed_runs
from kernelhub.web.text import spreadsheet_safe, strip_control
from verifier.records import GateId, Outcome

NAMES: Final = ("q", "suite", "task", "status", "outcome", "illusion", "gate", "node", "author")
EXPORT_MAX: Final = 20_000
EXPORT_PAGE: Final = 500
SORTS: Final = {
    RunOrder.ACTIVITY: ("when", "Ended, started or queued; sort by age instead", "Next page"),
    RunOrder.NEWEST: ("queued ↓", "Sort the other way", "Older"),
    RunOrder.OLDEST: ("queued ↑", "Sort the other way", "Newer"),
}
"""The head of the column of times, what a click on it does, and the link to the next page."""

ORDERS: Final = ((RunOrder.NEWEST.value, "newest first"), (RunOrder.OLDEST.value, "oldest first"))

COLUMNS: Final = (
    "run", "created_at", "status", "outcome", "illusion", "hard", "loose_accepted", "suite", "task",
    "kernel", "kernel_id", "author_kind", "node", "seed", "duration_ms",
    *(gate.value for gate in GateId),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """The filter as it stands in the URL, and as core understands it."""

    words: Mapping[str, str]
    filters: RunFilters
    order: RunOrder
    error: str = ""

    @property
    def narrowed(self) -> bool:
        return any(value for name, value in self.words.items() if name != "order")

    def link(self, path: str = "", **more: str) -> str:
        kept = {name: value for name, value in {**self.words, **more}.items() if value}
        return f"{path}?{urlencode(kept)}"


def asked(query: MultiValueDict[str, str]) -> Asked:
    """Reads the URL; a value that means nothing is left out and said."""
    words = {name: strip_control(query.get(name) or "").strip()[:200] for name in NAMES}
    words |= {
        name: strip_control(query.get(name) or "").strip()[:40]
        for name in ("campaign", "kernel", "order")
    }
    campaign, kernel = _uuid(words["campaign"]), _uuid(words["kernel"])
    wrong = [f"{name} {words[name][:40]!r}" for name in _wrong(words, campaign, kernel)]
    filters = RunFilters(
        suite=words["suite"],
        task=words["task"],
        status=words["status"],
        outcome=words["outcome"],
        illusion={"yes": True, "no": False}.get(words["illusion"]),
        campaign=campaign,
        kernel=kernel,
        author_kind=words["author"],
        node=words["node"],
        text=words["q"],
        gate=words["gate"],
    )
    error = (
        f"These filters mean nothing here and match no run: {', '.join(wrong)}." if wrong else ""
    )
    return Asked(words, filters, _order(words["order"]), error)


def _order(word: str) -> RunOrder:
    """What happens now comes first unless the reader says otherwise."""
    return RunOrder(word) if word in set(RunOrder) else RunOrder.ACTIVITY


def _wrong(words: Mapping[str, str], campaign: UUID | None, kernel: UUID | None) -> list[str]:
    allowed = {
        "status": set(RunStatus.values),
        "outcome": {one.value for one in Outcome},
        "gate": {one.value for one in GateId},
        "author": set(AuthorKind.values),
        "illusion": {"yes", "no"},
        "order": {one.value for one in RunOrder},
    }
    wrong = [name for name, known in allowed.items() if words[name] and words[name] not in known]
    ids = {"campaign": campaign, "kernel": kernel}
    return wrong + [name for name, value in ids.items() if words[name] and value is None]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_GET
@readers_only
def runs_page(request: HttpRequest) -> HttpResponseBase:
    ask = asked(request.GET)
    found, error = _page(ask, request.GET.get("cursor", ""))
    counts, verdicts = selectors.filtered_counts(ask.filters)
    context = {
        "sentence": list_sentence(counts, verdicts, narrowed=ask.narrowed),
        "lede": _lede(counts),
        "runs": listed_runs(found.runs),
        "filters": ask.words,
        "filtered": ask.narrowed,
        "fields": _fields(ask.words),
        "errors": ask.error or error,
        "by_age": ask.order is not RunOrder.ACTIVITY,
        "whole": ask.order is RunOrder.ACTIVITY and not request.GET.get("cursor"),
        **_links(ask, found, on_first=not request.GET.get("cursor")),
    }
    return render(request, "web/runs.html", context)


def _page(ask: Asked, cursor: str) -> tuple[RunPage, str]:
    if ask.error:
        return RunPage([], "", ""), ""
    try:
        return run_list(ask.filters, cursor[:400], order=ask.order), ""
    except CursorError:
        first = run_list(ask.filters, order=ask.order)
        return first, "That page does not exist; this is the first one."


def _links(ask: Asked, found: RunPage, *, on_first: bool) -> dict[str, str]:
    sort_word, sort_title, next_word = SORTS[ask.order]
    other = RunOrder.OLDEST if ask.order is RunOrder.NEWEST else RunOrder.NEWEST
    return {
        "sort_link": ask.link(order=other),
        "sort_word": sort_word,
        "sort_title": sort_title,
        "first_link": "" if on_first else ask.link(),
        "next_link": ask.link(cursor=found.next) if found.next else "",
        "next_word": next_word,
        "csv_link": ask.link("/runs/export.csv"),
        "json_link": ask.link("/runs/export.json"),
    }


def list_sentence(runs: RunCounts, verdicts: VerdictCounts, *, narrowed: bool) -> str:
    """What the list holds, in one sentence."""
    if not runs.total:
        return "No run matches." if narrowed else "No kernel has been judged yet."
    head = f"{plural(runs.total, 'run')}{' match' if narrowed and runs.total > 1 else ''}"
    head += " matches" if narrowed and runs.total == 1 else ""
    rejected = f"{verdicts.rejected:,} rejected"
    if verdicts.illusions:
        rejected += f", of them {plural(verdicts.illusions, 'illusion')}"
    undecided = f", {verdicts.undecided:,} undecided" if verdicts.undecided else ""
    return f"{head}: {verdicts.accepted:,} accepted, {rejected}{undecided}."


def _lede(runs: RunCounts) -> str:
    parts = [
        f"{runs.queued:,} waiting" if runs.queued else "",
        f"{runs.running:,} running" if runs.running else "",
        f"{runs.errored:,} errored, which is our fault and no verdict" if runs.errored else "",
        f"{runs.cancelled:,} cancelled" if runs.cancelled else "",
    ]
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _fields(words: Mapping[str, str]) -> list[dict[str, Any]]:
    options = selectors.filter_options()
    plain = [
        ("suite", "Suite", options["suite"]),
        ("status", "Status", RunStatus.values),
        ("outcome", "Outcome", [one.value for one in Outcome]),
        ("illusion", "Illusion", ["yes", "no"]),
    ]
    gates = [(gate.id.value, f"{gate.number} {gate.short}") for gate in GATES]
    return [
        *[
            _field(words, name, label, [(one, one) for one in known])
            for name, label, known in plain
        ],
        _field(words, "gate", "Fails gate", gates),
        _field(words, "author", "Author", [(one, one) for one in AuthorKind.values]),
        _field(words, "node", "Node", [(one, one) for one in options["node"]]),
        _field(words, "order", "Order", ORDERS, default="latest activity"),
    ]


def _field(
    words: Mapping[str, str],
    name: str,
    label: str,
    options: Sequence[tuple[str, str]],
    default: str = "any",
) -> dict[str, Any]:
    value = words[name]
    return {"name": name, "label": label, "value": value, "options": options, "default": default}


def export_row(run: Run) -> list[Any]:
    """One run as values in the order of COLUMNS."""
    verdict = getattr(run, "verdict", None)
    gates = {row.gate: row.status for row in verdict.gates.all()} if verdict else {}
    return [
        str(run.pk), run.created_at.isoformat(), run.status,
        verdict.outcome if verdict else None, verdict.illusion if verdict else None,
        verdict.hard if verdict else None, verdict.loose_accepted if verdict else None,
        run.task.suite.slug, run.task.slug, str(run.kernel), str(run.kernel_id),
        run.kernel.author_kind, run.node.name if run.node else None, run.seed,
        verdict.duration_ms if verdict else None,
        *[gates.get(gate.value) for gate in GateId],
    ]  # fmt: skip


def _exported(ask: Asked) -> Iterator[list[Any]]:
    """Page by page, so that no query is long; an export ends at EXPORT_MAX rows.

    By creation, which does not change while pages are read: each run stands in it once.
    """
    order = RunOrder.OLDEST if ask.order is RunOrder.OLDEST else RunOrder.NEWEST
    cursor, sent = "", 0
    while not ask.error and sent < EXPORT_MAX:
        found = run_list(ask.filters, cursor, EXPORT_PAGE, order=order)
        yield from (export_row(run) for run in found.runs)
        cursor, sent = found.next, sent + len(found.runs)
        if not cursor:
            return


@require_GET
@readers_only
def runs_csv(request: HttpRequest) -> HttpResponseBase:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="runs.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    for row in _exported(asked(request.GET)):
        writer.writerow([spreadsheet_safe(value) for value in row])
    return response


@require_GET
@readers_only
def runs_json(request: HttpRequest) -> HttpResponseBase:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _exported(asked(request.GET))]
    return JsonResponse({"runs": rows, "complete": len(rows) < EXPORT_MAX})
