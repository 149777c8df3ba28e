"""Suites and their tasks: what the loose test says of each kernel, and what the gates say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from kernelhub.core.models import GateResult, Kernel, Run, Suite, Task, Verdict
from kernelhub.core.selectors import KernelRow, LooseVsGates, kernel_rows, suite_overview
from kernelhub.web import selectors
from kernelhub.web.access import readers_only
from kernelhub.web.catalogue import EXPECTATIONS, OUTCOME_LOOKS, WAITING, Look
from kernelhub.web.present import counted_words, plural, rate_sentence, submitted_words
from kernelhub.web.rows import listed_runs
from kernelhub.web.source import source_html
from verifier.records import Outcome

UNDECLARED: Final = "of the corpus, no expectation declared"
SUBMITTED: Final = "submitted, no expectation declared"
CLAIMS: Final = (*EXPECTATIONS.values(), UNDECLARED, SUBMITTED)


@require_GET
@readers_only
def suites_page(request: HttpRequest) -> HttpResponseBase:
    suites = selectors.suite_totals()
    tasks = sum(suite.tasks for suite in suites)
    judged = sum(suite.judged for suite in suites)
    counts = [plural(len(suites), "suite"), plural(tasks, "task"), plural(judged, "kernel")]
    sentence = f"{', '.join(counts)} judged." if suites else "No suite is loaded yet."
    return render(request, "web/suites.html", {"suites": suites, "sentence": sentence})


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel in the suite's table: what its corpus says, the loose test, the twelve gates."""

    kernel: Kernel
    verdict: Verdict | None
    run: Run | None
    findings: Sequence[GateResult]
    expectation: str
    look: Look


@dataclass(frozen=True, slots=True)
class Group:
    task: Task
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ExpectationRow:
    """How kernels of one claim fared."""

    word: str
    total: int
    accepted: int
    rejected: int

    @property
    def open(self) -> int:
        return self.total - self.accepted - self.rejected


@require_GET
@readers_only
def suite_page(request: HttpRequest, slug: str) -> HttpResponseBase:
    suite = _suite_or_404(slug)
    overview = suite_overview(suite)
    rows = table_rows(kernel_rows(suite))
    corpus = [row for row in rows if selectors.is_corpus(row.kernel)]
    noun = "corpus kernel" if corpus else "submitted kernel"
    two = loose_vs_gates(corpus or rows)
    apart = loose_vs_gates([row for row in rows if not selectors.is_corpus(row.kernel)])
    context = {
        "suite": suite,
        "sentence": sentence(suite.title, len(overview.tasks), two, noun),
        "apart": submitted_words(apart) if corpus else "",
        "two": two,
        "counted": counted_words(two, noun),
        "judged": overview.judged,
        "groups": groups([row.task for row in overview.tasks], rows),
        "expectations": expectation_rows(rows),
    }
    return render(request, "web/suite.html", context)


def _suite_or_404(slug: str) -> Suite:
    suite = selectors.suite_get(slug)
    if suite is None:
        raise Http404
    return suite


def loose_vs_gates(rows: Iterable[Row]) -> LooseVsGates:
    return LooseVsGates.of(row.verdict for row in rows if row.verdict)


def sentence(title: str, tasks: int, two: LooseVsGates, noun: str) -> str:
    if not two.judged:
        return f"{title}: {plural(tasks, 'task')}, and no {noun} judged yet."
    return rate_sentence(two.illusions, two.loose_accepted, noun)


def table_rows(kernels: Sequence[KernelRow]) -> list[Row]:
    """The kernels with all twelve marks of their latest verdicts; one query."""
    marks = selectors.gate_marks(row.verdict for row in kernels if row.verdict)
    return [_row(row, marks) for row in kernels]


def _row(row: KernelRow, marks: Mapping[Any, Sequence[GateResult]]) -> Row:
    verdict = row.verdict
    return Row(
        kernel=row.kernel,
        verdict=verdict,
        run=verdict.run if verdict else None,
        findings=marks.get(verdict.pk, ()) if verdict else (),
        expectation=EXPECTATIONS.get(row.kernel.expectation, "not declared"),
        look=OUTCOME_LOOKS[Outcome(verdict.outcome)] if verdict else WAITING,
    )


def groups(tasks: Iterable[Task], rows: Sequence[Row]) -> list[Group]:
    """Every task of the suite, also those without a kernel: they stay in the denominator."""
    return [Group(task, [row for row in rows if row.kernel.task_id == task.pk]) for task in tasks]


def expectation_rows(rows: Sequence[Row]) -> list[ExpectationRow]:
    """What is said of the kernels beforehand against what the gates found; no row without any."""
    by_claim: dict[str, list[Row]] = {word: [] for word in CLAIMS}
    for row in rows:
        by_claim[claim(row.kernel)].append(row)
    return [_expectation(word, found) for word, found in by_claim.items() if found]


def claim(kernel: Kernel) -> str:
    """What is said of a kernel before anybody judges it, in words."""
    if not selectors.is_corpus(kernel):
        return SUBMITTED
    return EXPECTATIONS.get(kernel.expectation, UNDECLARED)


def _expectation(word: str, rows: Sequence[Row]) -> ExpectationRow:
    outcomes = [row.verdict.outcome for row in rows if row.verdict]
    accepted, rejected = (outcomes.count(one.value) for one in (Outcome.ACCEPTED, Outcome.REJECTED))
    return ExpectationRow(word, len(rows), accepted, rejected)


@require_GET
@readers_only
def task_page(request: HttpRequest, suite: str, slug: str) -> HttpResponseBase:
    task = selectors.task_get(suite, slug)
    if task is None:
        raise Http404
    runs = listed_runs(selectors.runs_of_task(task))
    context = {
        "task": task,
        "runs": runs,
        "inputs": tensors(task.contract),
        "variables": variables(task.contract),
        "summary": _summary(task.contract),
        "contract": json.dumps(task.contract, indent=2, ensure_ascii=False),
        "reference": source_html(task.reference, "torch"),
        **task_words(runs),
    }
    return render(request, "web/task.html", context)


def _summary(contract: Mapping[str, Any]) -> str:
    text = contract.get("summary") or contract.get("description") or ""
    return text if isinstance(text, str) else ""


def task_words(runs: Sequence[Run]) -> dict[str, str]:
    latest: dict[Any, str] = {}
    for run in runs:
        verdict = getattr(run, "verdict", None)
        if verdict is not None:
            latest.setdefault(run.kernel_id, verdict.outcome)
    if not latest:
        return {
            "headline": "no kernel judged",
            "sentence": "No kernel of this task has a verdict yet.",
        }
    wrong = sum(outcome == Outcome.REJECTED for outcome in latest.values())
    judged = plural(len(latest), "kernel")
    return {
        "headline": f"{judged} judged",
        "sentence": f"The gates reject {wrong} of {judged} judged on this task.",
    }


@dataclass(frozen=True, slots=True)
class TensorRow:
    """An input, scalar or output of a contract."""

    name: str
    shape: str
    dtype: str


def tensors(contract: Mapping[str, Any]) -> list[TensorRow]:
    """The contract's arguments and outputs, as far as they have the usual shape."""
    rows = [_tensor(one, "") for one in _entries(contract, "inputs")]
    rows += [_tensor(one, " (scalar)") for one in _entries(contract, "scalars")]
    return rows + [_tensor(one, " (output)") for one in _entries(contract, "outputs")]


def _entries(contract: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = contract.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _tensor(entry: Mapping[str, Any], kind: str) -> TensorRow:
    shape = entry.get("shape", entry.get("dims", ()))
    axes = ", ".join(str(axis) for axis in shape) if isinstance(shape, list) else str(shape)
    name = f"{entry.get('name', '')}{kind}"
    return TensorRow(name, f"[{axes}]" if axes or not kind else "", str(entry.get("dtype", "")))


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A name that shapes and dtypes of a contract are written with: a size or a dtype."""

    name: str
    usual: str
    candidates: str


def variables(contract: Mapping[str, Any]) -> list[VariableRow]:
    """The contract's dims, then its dtype variables, as far as they have the usual shape."""
    found = [contract.get(group) for group in ("dims", "dtypes")]
    groups = [group for group in found if isinstance(group, dict)]
    return [_variable(name, entry) for group in groups for name, entry in group.items()]


def _variable(name: str, entry: object) -> VariableRow:
    values = entry if isinstance(entry, dict) else {"candidates": entry}
    candidates = values.get("candidates")
    words = [str(one) for one in candidates] if isinstance(candidates, list) else []
    return VariableRow(name, str(values.get("usual", "")), ", ".join(words))
