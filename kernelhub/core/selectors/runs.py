"""Reading runs: filtered lists with keyset pages, one run in full, events after a number."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from kernelhub.core.models import Event, GateResult, Run
from verifier.records import GateStatus

PAGE: Final = 50
PAGE_MAX: Final = 500
EVENTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class RunFilters:
    """What a list of runs is narrowed to; '' and None mean any.

    ``task`` is a path such as ``fuzzoracle/softmax`` or a bare slug; ``text`` is looked for in
    labels, author names, task slugs and the beginnings of hashes and run ids. ``gate`` keeps the
    runs that failed that gate, such as ``G10``.
    """

    suite: str = ""
    task: str = ""
    status: str = ""
    outcome: str = ""
    illusion: bool | None = None
    campaign: UUID | None = None
    author_kind: str = ""
    kernel: UUID | None = None
    node: str = ""
    text: str = ""
    gate: str = ""

    def query(self) -> Q:
        """All given filters, and-ed."""
        exact = {
            "task__suite__slug": self.suite,
            "status": self.status,
            "verdict__outcome": self.outcome,
            "campaign_id": self.campaign,
            "kernel__author_kind": self.author_kind,
            "kernel_id": self.kernel,
            "node__name": self.node,
        }
        query = Q(**{name: value for name, value in exact.items() if value})
        if self.illusion is not None:
            query &= Q(verdict__illusion=self.illusion)
        if self.gate:
            failed = GateResult.objects.filter(gate=self.gate, status=GateStatus.FAIL.value)
            query &= Q(verdict__in=failed.values("verdict"))
        return query & _task_query(self.task) & _text_query(self.text)


def _task_query(path: str) -> Q:
    suite, _, slug = path.rpartition("/")
    named = Q(task__slug=slug) if slug else Q()
    return named & Q(task__suite__slug=suite) if suite else named


def _text_query(text: str) -> Q:
    words = Q()
    for word in text.split():
        words &= (
            Q(kernel__label__icontains=word)
            | Q(kernel__author_name__icontains=word)
            | Q(kernel__sha256__startswith=word.lower())
            | Q(task__slug__icontains=word)
            | Q(id__in=_ids_named(word))
        )
    return words


def _ids_named(word: str) -> list[UUID]:
    try:
        return [UUID(word)]
    except ValueError:
        return []


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first, and the cursors of the pages beside this one ('' where none is)."""

    runs: Sequence[Run]
    next: str
    previous: str


class CursorError(ValueError):
    """The cursor was not made by run_list."""


def run_list(
    filters: RunFilters | None = None,
    cursor: str = "",
    limit: int = PAGE,
    *,
    oldest_first: bool = False,
) -> RunPage:
    """One page of runs, newest first by default; constant cost however far the page lies back.

    CursorError for a cursor that no page gave. The runs come with task, suite, kernel, node,
    campaign, verdict and, on the verdict, gate statuses (no counterexamples).
    """
    backwards, position = _cursor_read(cursor)
    size = max(1, min(limit, PAGE_MAX))
    runs = runs_for_lists().filter((filters or RunFilters()).query())
    rising = backwards != oldest_first
    found = list(_from_position(runs, position, backwards=rising)[: size + 1])
    more, page = len(found) > size, found[:size]
    if backwards:
        page.reverse()
    older, newer = (more, position is not None) if not backwards else (True, more)
    return RunPage(
        page,
        _cursor_write(page[-1], backwards=False) if page and older else "",
        _cursor_write(page[0], backwards=True) if page and newer else "",
    )


def runs_for_lists() -> QuerySet[Run]:
    """Runs with all that a list row shows, without the large columns."""
    gates = GateResult.objects.only("verdict_id", "gate", "number", "status", "hard", "reason")
    return (
        Run.objects.select_related("task__suite", "kernel", "node", "campaign", "verdict")
        .defer(
            "task__contract",
            "task__contract_text",
            "task__reference",
            "kernel__source",
            "verdict__document",
            "verdict__environment",
            "node__environment",
        )
        .prefetch_related(Prefetch("verdict__gates", gates.order_by("number")))
    )


def _from_position(
    runs: QuerySet[Run], position: tuple[datetime, UUID] | None, *, backwards: bool
) -> QuerySet[Run]:
    if position is not None:
        at, run_id = position
        side = "gt" if backwards else "lt"
        runs = runs.filter(
            Q(**{f"created_at__{side}": at}) | Q(created_at=at, **{f"id__{side}": run_id})
        )
    return runs.order_by("created_at", "id") if backwards else runs.order_by("-created_at", "-id")


def _cursor_write(run: Run, *, backwards: bool) -> str:
    parts = [int(backwards), run.created_at.isoformat(), str(run.pk)]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _cursor_read(cursor: str) -> tuple[bool, tuple[datetime, UUID] | None]:
    if not cursor:
        return False, None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        backwards, at, run_id = json.loads(text)
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise CursorError("This is no cursor of a list of runs.")
        return bool(backwards), (moment, UUID(run_id))
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise CursorError("This is no cursor of a list of runs.") from error


def run_detail(run_id: UUID) -> Run:
    """One run with everything that its page shows; Run.DoesNotExist without it."""
    return (
        Run.objects.select_related(
            "task__suite", "kernel__parent", "node", "campaign", "verdict", "created_by"
        )
        .prefetch_related("verdict__gates", "verdict__measurements")
        .get(pk=run_id)
    )


def events_after(run_id: UUID, seq: int = 0, limit: int = EVENTS_MAX) -> list[Event]:
    """The run's events with numbers above ``seq``, in order, at most ``limit`` of them."""
    size = max(1, min(limit, EVENTS_MAX))
    return list(Event.objects.filter(run_id=run_id, seq__gt=seq).order_by("seq")[:size])
