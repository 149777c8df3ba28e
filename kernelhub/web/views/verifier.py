"""The twelve gates, and how kernels fare at each."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from kernelhub.web import selectors, studies
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import GATES, GatePage
from kernelhub.web.present import plural
from kernelhub.web.selectors import GateTotals
from verifier.records import GATE_SET_VERSION, VERIFIER_VERSION


@dataclass(frozen=True, slots=True)
class Row:
    page: GatePage
    totals: GateTotals


@require_GET
@readers_only
def verifier_page(request: HttpRequest) -> HttpResponseBase:
    totals = selectors.gate_totals()
    rows = [Row(gate, totals.get(gate.id, GateTotals())) for gate in GATES]
    context = {
        "rows": rows,
        "sentence": sentence(rows),
        "gate_set": GATE_SET_VERSION,
        "version": VERIFIER_VERSION,
        "studies": studies.sections(),
    }
    return render(request, "web/verifier.html", context)


def sentence(rows: list[Row]) -> str:
    exact = sum(row.page.exact for row in rows)
    worst = max(rows, key=lambda row: row.totals.failed)
    if not worst.totals.failed:
        return f"Twelve gates, {exact} of which are mostly exact."
    failed = plural(worst.totals.failed, "kernel")
    return (
        f"Twelve gates, {exact} of which are mostly exact; gate {worst.page.number} "
        f"{worst.page.short} rejects the most, {failed}."
    )
