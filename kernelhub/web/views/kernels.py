"""One kernel: its source and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from kernelhub.core.models import Kernel, Run
from kernelhub.web import selectors
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import EXPECTATIONS, run_look
from kernelhub.web.present import plural
from kernelhub.web.rows import listed_runs, verdict_of
from kernelhub.web.source import is_cut, source_html

SUFFIXES: Final = {"cuda": "cu"}


@require_GET
@readers_only
def kernel_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    kernel = _kernel_or_404(pk)
    runs = listed_runs(selectors.runs_of_kernel(pk))
    context = {
        "kernel": kernel,
        "runs": runs,
        "expectation": EXPECTATIONS.get(kernel.expectation, ""),
        "source": source_html(kernel.source, kernel.language),
        "source_cut": is_cut(kernel.source),
        **words(runs),
    }
    return render(request, "web/kernel.html", context)


def _kernel_or_404(pk: UUID) -> Kernel:
    kernel = selectors.kernel_get(pk)
    if kernel is None:
        raise Http404
    return kernel


def words(runs: Sequence[Run]) -> dict[str, str]:
    """The latest verdict speaks for the kernel; without one, the latest run does."""
    if not runs:
        sentence = "Nobody has judged this kernel."
        return {"headline": "not judged", "sentence": sentence, "tone": ""}
    verdicts = [verdict for run in runs if (verdict := verdict_of(run)) is not None]
    latest = runs[0]
    outcome = verdicts[0].outcome if verdicts else None
    look = run_look(latest.status, outcome)
    illusion = bool(verdicts) and verdicts[0].illusion
    return {
        "headline": "an illusion" if illusion else look.word,
        "sentence": _sentence(len(runs), len(verdicts), outcome, illusion=illusion),
        "tone": look.css if look.css in ("pass", "fail", "maybe", "error", "run") else "",
    }


def _sentence(runs: int, judged: int, outcome: str | None, *, illusion: bool) -> str:
    if outcome is None:
        return f"{plural(runs, 'run')}, none of them with a verdict so far."
    tail = ", though the loose test accepts it" if illusion else ""
    times = "once" if judged == 1 else f"{judged} times"
    return f"Judged {times}; the latest verdict says {outcome}{tail}."


@require_GET
@readers_only
def kernel_source(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The source as a plain download, byte for byte."""
    kernel = _kernel_or_404(pk)
    response = HttpResponse(kernel.source, content_type="text/plain; charset=utf-8")
    suffix = SUFFIXES.get(kernel.language, "py") if "def " not in kernel.source else "py"
    response["Content-Disposition"] = f'attachment; filename="kernel-{kernel.sha256[:12]}.{suffix}"'
    return response
