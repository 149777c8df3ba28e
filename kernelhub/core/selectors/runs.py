"""Reading runs: filtered lists with keyset pages, one run in full, events after a number."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import F, Func, Prefetch, Q, QuerySet, TextField, Value
from django.db.models.lookups import GreaterThan, LessThan

from kernelhub.core.choices import RunStatus
from kernelhub.core.models import Event, GateResult, Run
from verifier.records import GateStatus

PAGE: Final = 50
PAGE_MAX: Final = 500
EVENTS_MAX: Final = 1000
NO_CURSOR: Final = "This is no cursor of a list of runs in this order."


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
class Stretch:
    """A part of a list of runs: which runs, and the moment by which they are sorted."""

    runs: Q
    moment: str


class RunOrder(StrEnum):
    """By creation, or by what happens: what runs, then what ended last, then what waits.

    A list by activity moves while runs do. Its pages hold every run that stays as it is once;
    one that moves up between two pages is found again on the first.
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    ACTIVITY = "activity"

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The parts in their order; each is sorted newest first, but oldest first in OLDEST."""
        if self is not RunOrder.ACTIVITY:
            return (Stretch(Q(), "created_at"),)
        return (
            Stretch(Q(status=RunStatus.RUNNING), "started_at"),
            Stretch(Q(finished_at__isnull=False), "finished_at"),
            Stretch(Q(status=RunStatus.QUEUED), "created_at"),
        )


class Position(NamedTuple):
    """Beside which run a page begins: its stretch, its moment there, its id."""

    stretch: int
    moment: datetime
    run_id: UUID


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs in their order, and the cursors of the pages beside this one ('' where none is)."""

    runs: Sequence[Run]
    next: str
    previous: str


class CursorError(ValueError):
    """The cursor was not made by run_list, or for another order."""


def run_list(
    filters: RunFilters | None = None,
    cursor: str = "",
    limit: int = PAGE,
    *,
    order: RunOrder = RunOrder.NEWEST,
) -> RunPage:
    """One page of runs, newest first by default; constant cost however far the page lies back.

    CursorError for a cursor that no page of this order gave. The runs come with task, suite,
    kernel, node, campaign, verdict and, on the verdict, gate statuses (no counterexamples).
    """
    backwards, start = _cursor_read(cursor, order)
    size = max(1, min(limit, PAGE_MAX))
    runs = runs_for_lists().filter((filters or RunFilters()).query())
    found = _from_position(runs, order, start, backwards=backwards, limit=size + 1)
    more, page = len(found) > size, found[:size]
    if backwards:
        page.reverse()
    older, newer = (more, start is not None) if not backwards else (True, more)
    return RunPage(
        [run for _, run in page],
        _cursor_write(order, *page[-1], backwards=False) if page and older else "",
        _cursor_write(order, *page[0], backwards=True) if page and newer else "",
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
    runs: QuerySet[Run], order: RunOrder, start: Position | None, *, backwards: bool, limit: int
) -> list[tuple[int, Run]]:
    """The next runs, each with the number of its stretch; reads no more stretches than needed."""
    stretches = list(enumerate(order.stretches))
    first = start.stretch if start else 0
    rising = backwards != (order is RunOrder.OLDEST)
    found: list[tuple[int, Run]] = []
    for number, stretch in stretches[first::-1] if backwards else stretches[first:]:
        within = runs.filter(stretch.runs)
        if start and number == start.stretch:
            within = _beyond(within, stretch.moment, start, rising=rising)
        sign = "" if rising else "-"
        within = within.order_by(f"{sign}{stretch.moment}", f"{sign}id")
        found += [(number, run) for run in within[: limit - len(found)]]
        if len(found) == limit:
            break
    return found


def _beyond(runs: QuerySet[Run], moment: str, start: Position, *, rising: bool) -> QuerySet[Run]:
    """Compared as rows, moment and id let an index begin in its middle."""
    compare = GreaterThan if rising else LessThan
    here = _row(F(moment), F("id"))
    return runs.filter(compare(here, _row(Value(start.moment), Value(start.run_id))))


def _row(*expressions: F | Value) -> Func:
    return Func(*expressions, function="ROW", output_field=TextField())


def _cursor_write(order: RunOrder, number: int, run: Run, *, backwards: bool) -> str:
    moment = getattr(run, order.stretches[number].moment)
    parts = [order.value, int(backwards), number, moment.isoformat(), str(run.pk)]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _cursor_read(cursor: str, order: RunOrder) -> tuple[bool, Position | None]:
    """Whether it leads backwards, and the run that it starts beyond."""
    if not cursor:
        return False, None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        made_for, backwards, number, at, run_id = json.loads(text)
        start = Position(range(len(order.stretches))[number], _moment(at), UUID(run_id))
    except (ValueError, TypeError, AttributeError, IndexError, binascii.Error) as error:
        raise CursorError(NO_CURSOR) from error
    if made_for != order:
        raise CursorError(NO_CURSOR)
    return bool(backwards), start


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment


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
