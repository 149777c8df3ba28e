"""The page of one run, live until it ends, and the files that belong to it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_POST

from kernelhub.core.models import Run, Verdict
from kernelhub.core.selectors import run_detail
from kernelhub.core.services import run_cancel
from kernelhub.web import selectors
from kernelhub.web.access import may_cancel, readers_only
from kernelhub.web.catalogue import EXPECTATIONS, LOOKS, GatePage, run_look
from kernelhub.web.commands import hub_command
from kernelhub.web.deep import deep_rows
from kernelhub.web.evidence import Evidence, evidence
from kernelhub.web.figures import TimingRow, figure_json, timing_figure
from kernelhub.web.present import (
    COUNT_WORDS,
    Cell,
    Finding,
    GateLike,
    cells,
    verdict_sentence,
)
from kernelhub.web.repeats import repeated
from kernelhub.web.source import is_cut, source_html
from kernelhub.web.text import reason_line
from kernelhub.web.timeline import log_text, timeline
from verifier.records import GateStatus, Outcome

HEADLINES: Final = {
    "queued": "waiting for a node",
    "running": "being judged",
    "errored": "our machinery broke",
    "cancelled": "cancelled",
    "accepted": "accepted",
    "rejected": "rejected",
    "undecided": "undecided",
}

FACTS: Final = (
    ("device_name", "device"),
    ("device_uuid", "device id"),
    ("mode", "mode"),
    ("capability", "capability"),
    ("driver", "driver"),
    ("torch", "torch"),
    ("triton", "triton"),
    ("numpy", "numpy"),
    ("python", "python"),
    ("platform", "platform"),
    ("sandbox", "sandbox"),
)
"""The environment's fields in the order in which people ask for them."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of the twelve gates: from the verdict, or from events until there is one."""

    findings: Sequence[GateLike]
    documents: Sequence[dict[str, Any]]
    running: str | None = None


@dataclass(frozen=True, slots=True)
class GateRow:
    """A row of the table of all gates."""

    cell: Cell
    finding: GateLike | None
    notes: Sequence[dict[str, Any]]
    duration_ms: float | None
    failed_here: bool
    same_as: GatePage | None = None
    """The earlier gate that says the same; its row holds the words."""


@require_GET
@readers_only
def run_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    run = _run_or_404(pk)
    verdict: Verdict | None = getattr(run, "verdict", None)
    found = _found(run, verdict)
    marks = cells(found.findings, found.running)
    same = repeated(found.findings)
    failures = _failures(run, found, same)
    context = {
        "run": run,
        "verdict": verdict,
        "cells": marks,
        "judged_looks": tuple(LOOKS.values()),
        "failures": failures,
        "fetch": f"{hub_command(request, 'verdict', str(pk), '--json')} > {_verdict_name(run)}",
        "deep_rows": deep_rows(verdict.document) if verdict else (),
        "gate_rows": _gate_rows(marks, found, {one.page.id for one in failures}, same),
        **_words(run, verdict, found),
        **_side(run, verdict),
        **_lines(run),
        "expectation": EXPECTATIONS.get(run.kernel.expectation, ""),
        "short": str(run.pk)[:8],
        "last_seq": run.last_seq,
        "live": not run.is_ended,
        "can_cancel": may_cancel(request.user, run),
        "source": _source(run.kernel.sha256, run.kernel.language, run.kernel.source),
        "source_cut": is_cut(run.kernel.source),
    }
    return render(request, "web/run.html", context)


def _run_or_404(pk: UUID) -> Run:
    try:
        return run_detail(pk)
    except Run.DoesNotExist as error:
        raise Http404 from error


@lru_cache(maxsize=64)
def _source(sha256: str, language: str, source: str) -> SafeString:
    """A live page is fetched again and again; its source never changes."""
    return source_html(source, language)


def _found(run: Run, verdict: Verdict | None) -> Found:
    if verdict is not None:
        rows = list(verdict.gates.all())
        fields = ("gate", "hard", "notes", "duration_ms", "counterexample")
        return Found(rows, [{name: getattr(row, name) for name in fields} for row in rows])
    if run.status == "queued":
        return Found((), ())  # whatever an earlier attempt found is history
    events, running = selectors.run_findings(run.pk, run.attempt)
    payloads = [event.payload for event in events]
    judged = [one for one in payloads if one.get("status") in set(GateStatus)]
    findings = [Finding.from_payload(one) for one in judged]
    return Found(findings, judged, None if run.is_ended else running)


def _failures(run: Run, found: Found, same: Mapping[str, GatePage]) -> list[Evidence]:
    return [
        evidence(
            document["gate"],
            document.get("hard") is True,
            document["counterexample"],
            _verdict_name(run),
            same_as=same.get(document["gate"]),
        )
        for document in found.documents
        if document.get("counterexample")
    ]


def _verdict_name(run: Run) -> str:
    return f"verdict-{str(run.pk)[:8]}.json"


def _gate_rows(
    marks: Sequence[Cell], found: Found, failed: set[Any], same: Mapping[str, GatePage]
) -> list[GateRow]:
    findings = {finding.gate: finding for finding in found.findings}
    documents = {document["gate"]: document for document in found.documents}
    return [
        GateRow(
            mark,
            findings.get(mark.gate.id),
            # Notes of a gate that repeats another one are that same text, case by case.
            () if mark.gate.id in same else documents.get(mark.gate.id, {}).get("notes") or (),
            documents.get(mark.gate.id, {}).get("duration_ms"),
            mark.gate.id in failed,
            same.get(mark.gate.id),
        )
        for mark in marks
    ]


def _words(run: Run, verdict: Verdict | None, found: Found) -> dict[str, Any]:
    """Headline, the finding in one sentence, why, and what to do."""
    look = run_look(run.status, verdict.outcome if verdict else None)
    tone = look.css if look.css in ("pass", "fail", "maybe", "error", "run") else ""
    words = _judged_words(verdict, found) if verdict else _unjudged_words(run, found)
    return {"look": look, "tone": tone, **words}


def _judged_words(verdict: Verdict, found: Found) -> dict[str, Any]:
    headline = "an illusion" if verdict.illusion else HEADLINES[verdict.outcome]
    sentence = verdict_sentence(verdict.outcome, found.findings, verdict.loose_accepted)
    return {"headline": headline, "sentence": sentence, "because": _because(found.findings)}


def _because(findings: Sequence[GateLike]) -> str:
    """The first failure that no tolerance had a part in, else the first failure."""
    failed = [finding for finding in findings if finding.status == GateStatus.FAIL]
    first = next((finding for finding in failed if finding.hard), failed[0] if failed else None)
    if first is None:
        return ""
    text = reason_line(first.reason, 400)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _unjudged_words(run: Run, found: Found) -> dict[str, Any]:
    failed = sum(finding.status == GateStatus.FAIL for finding in found.findings)
    sentence, advice = {
        "queued": ("This run waits for a node.", _queue_advice(run)),
        "running": (_progress_words(len(found.findings), failed), ""),
        "errored": (
            "Our machinery broke, so this kernel was not judged; that does not count against it.",
            "Its source is kept. Submit it again once the cause is gone.",
        ),
        "cancelled": ("This run was cancelled before its verdict.", "The kernel is kept."),
    }[run.status]
    headline = HEADLINES[run.status]
    return {
        "headline": headline,
        "sentence": sentence,
        "because": run.error_message,
        "whole": run.error_message,
        "advice": advice,
    }


def _queue_advice(run: Run) -> str:
    place = f" of queue {run.requested_queue}" if run.requested_queue else ""
    return f"It starts by itself when a node{place} is free; the Fleet page shows the nodes."


def _progress_words(judged: int, failed: int) -> str:
    if not judged:
        return "The verifier is at work; no gate is judged yet."
    count = COUNT_WORDS.get(judged, str(judged)).capitalize()
    verb = "gates is" if judged == 1 else "gates are"
    tail = f"; {COUNT_WORDS[failed]} of them rejects" if failed == 1 else ""
    tail = f"; {COUNT_WORDS[failed]} of them reject" if failed > 1 else tail
    return f"{count} of twelve {verb} judged{tail}."


def _side(run: Run, verdict: Verdict | None) -> dict[str, Any]:
    timings = _timings(verdict)
    environment = _environment(run, verdict)
    return {
        "timings": timings,
        "figure": figure_json(timing_figure(timings)) if timings else None,
        "ranked": any(row.speedup is not None for row in timings),
        "no_timing": _no_timing(run, verdict),
        "loose": _loose(run, verdict),
        "environment": environment,
        "environment_rows": [
            (word, environment[key]) for key, word in FACTS if environment.get(key)
        ],
        "took_ms": _took_ms(run, verdict),
    }


def _timings(verdict: Verdict | None) -> list[TimingRow]:
    if verdict is None:
        return []
    return [
        TimingRow(
            row.workload, row.subject, row.latency_ms, row.low_ms, row.high_ms, row.n, row.speedup
        )
        for row in verdict.measurements.all()
    ]


def _no_timing(run: Run, verdict: Verdict | None) -> str:
    if verdict is None:
        return "No time yet." if not run.is_ended else "Not timed: there is no verdict."
    if verdict.outcome != Outcome.ACCEPTED:
        return "Not timed: only what passed its gates is."
    return "Not timed: times mean something on a GPU only."


def _loose(run: Run, verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is not None:
        document = verdict.document.get("loose")
        return document if isinstance(document, dict) else None
    event = selectors.run_loose(run.pk, run.attempt)
    return event.payload if event else None


def _environment(run: Run, verdict: Verdict | None) -> dict[str, Any]:
    if verdict is not None:
        return dict(verdict.environment)
    return dict(run.node.environment) if run.node else {}


def _took_ms(run: Run, verdict: Verdict | None) -> float | None:
    if verdict is not None:
        return verdict.duration_ms
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds() * 1000


def _lines(run: Run) -> dict[str, Any]:
    logs = selectors.run_log(run.pk)
    shown = logs[-selectors.LOG_EVENTS_SHOWN :]
    return {
        "events": timeline(selectors.run_timeline(run.pk), run.created_at),
        "log_text": log_text(shown),
        "log_cut": len(logs) > len(shown),
    }


@require_POST
def run_cancel_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    run = _run_or_404(pk)
    if not request.user.is_authenticated:
        return redirect(f"/login/?next=/runs/{pk}/")
    if run.is_ended:
        messages.info(request, "The run had already ended; nothing was changed.")
    elif not may_cancel(request.user, run):
        raise PermissionDenied("Your role does not allow cancelling this run.")
    elif run_cancel(run=run, by=request.user.get_username()):
        messages.success(request, "Cancelled. The device stops within a few seconds.")
    return redirect(run)


@require_GET
@readers_only
def verdict_file(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The verdict document, as the verifier's `replay` reads it."""
    verdict = _verdict_or_404(pk)
    response = JsonResponse(verdict.document, json_dumps_params={"indent": 2})
    response["Content-Disposition"] = f'attachment; filename="verdict-{str(pk)[:8]}.json"'
    return response


def _verdict_or_404(pk: UUID) -> Verdict:
    verdict: Verdict | None = getattr(_run_or_404(pk), "verdict", None)
    if verdict is None:
        raise Http404
    return verdict


@require_GET
@readers_only
def measurements_json(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    rows = [asdict(row) for row in _timings(_verdict_or_404(pk))]
    return JsonResponse({"run": str(pk), "measurements": rows})


@require_GET
@readers_only
def measurements_csv(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{str(pk)[:8]}.csv"'
    writer = csv.writer(response)
    writer.writerow(["workload", "subject", "latency_ms", "low_ms", "high_ms", "n", "speedup"])
    for row in _timings(_verdict_or_404(pk)):
        writer.writerow(asdict(row).values())
    return response
