"""Each selector costs as many queries for many rows as for one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kernelhub.core import selectors, services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Run, Suite
from kernelhub.core.selectors import RunOrder
from tests import factories as make

pytestmark = pytest.mark.django_db


def _fill(suite: Suite, runs: int) -> Run:
    campaign = make.make_campaign()
    for number in range(runs):
        kernel = make.make_kernel(make.make_task(suite), label=f"k{number}", group="g")
        run = make.make_run(kernel, campaign=campaign)
        measured = (make.measurement_record(),)
        make.make_finished(run, failed=("G1", "G4"), measurements=measured)
        make.make_run(kernel, campaign=campaign, queue=f"q{number}")
    return run


def _touch(run: Run) -> None:
    """Reads what a row of a list shows."""
    assert run.task.path
    assert str(run.kernel)
    assert run.campaign is not None
    assert str(run.node)
    if run.status == "finished":
        assert len(run.verdict.gates.all()) == 12


def _list(run: Run) -> None:
    for one in selectors.run_list().runs:
        _touch(one)


def _detail(run: Run) -> None:
    detail = selectors.run_detail(run.pk)
    _touch(detail)
    assert detail.kernel.source
    assert len(detail.verdict.measurements.all()) == 1


def _suite(run: Run) -> None:
    rows = selectors.suite_overview(run.task.suite).tasks
    assert all(row.task.path and row.illusions == 1 for row in rows)


def _kernels(run: Run) -> None:
    rows = selectors.kernel_rows(run.task.suite, "g")
    assert [len(row.failed) for row in rows] == [2] * len(rows)
    assert all(row.kernel.task.path for row in rows)


def _illusions(run: Run) -> None:
    for verdict in selectors.illusion_rows(run.task.suite):
        assert verdict.run.task.path
        assert str(verdict.run.kernel)


def _progress(run: Run) -> None:
    assert run.campaign_id is not None
    assert selectors.campaign_progress(run.campaign_id).verdicts.illusions


SELECTORS: list[Callable[[Run], Any]] = [
    _list,
    _detail,
    _suite,
    _kernels,
    _illusions,
    _progress,
    lambda run: selectors.events_after(run.pk),
    lambda run: selectors.overview_counts(),
    lambda run: selectors.queue_rows(),
    lambda run: selectors.fleet(),
]


@pytest.mark.parametrize("read", SELECTORS)
def test_the_number_of_queries_does_not_grow_with_the_rows(read: Callable[[Run], Any]) -> None:
    few = _fill(make.make_suite(), 1)
    with CaptureQueriesContext(connection) as at_first:
        read(few)
    many = _fill(make.make_suite(), 5)
    with CaptureQueriesContext(connection) as later:
        read(many)
    assert len(later) == len(at_first) <= 7


def test_events_after_a_number_come_in_order_and_are_bounded() -> None:
    run = make.make_finished()
    every = selectors.events_after(run.pk)
    assert [event.seq for event in every] == [1, 2, 3, 4]
    assert [event.seq for event in selectors.events_after(run.pk, 2)] == [3, 4]
    assert [event.seq for event in selectors.events_after(run.pk, 0, limit=2)] == [1, 2]


def _walk(order: RunOrder, size: int) -> list[list[UUID]]:
    """All pages from the first to the last, then back again, which must show the same."""
    pages = [selectors.run_list(limit=size, order=order)]
    while pages[-1].next:
        pages.append(selectors.run_list(cursor=pages[-1].next, limit=size, order=order))
    back = pages[-1:]
    while back[-1].previous:
        back.append(selectors.run_list(cursor=back[-1].previous, limit=size, order=order))
    shown = [[run.pk for run in page.runs] for page in pages]
    assert [[run.pk for run in page.runs] for page in reversed(back)][-len(shown) :] == shown
    return shown


def _mixed() -> list[UUID]:
    """Runs of every standing, in the order of activity."""
    ended = [make.make_finished(make.make_run()).pk for _ in range(4)]
    cancelled = make.make_run()
    waiting = [make.make_run().pk for _ in range(3)]
    running = [make.make_lease(make.make_run()).run.pk for _ in range(2)]
    services.run_cancel(run=cancelled)
    lease = make.make_lease(make.make_run(max_attempts=1))
    services.run_error(run_id=lease.run.pk, attempt=1, kind=ErrorKind.TASK, message="bad")
    return [*running[::-1], lease.run.pk, cancelled.pk, *ended[::-1], *waiting[::-1]]


def test_activity_is_what_runs_then_what_ended_last_then_what_waits() -> None:
    wanted = _mixed()
    found = selectors.run_list(order=RunOrder.ACTIVITY)
    assert [run.pk for run in found.runs] == wanted
    assert (found.next, found.previous) == ("", "")


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize("order", RunOrder)
def test_pages_in_any_order_hold_each_run_once_forth_and_back(order: RunOrder, size: int) -> None:
    wanted = _mixed()
    if order is not RunOrder.ACTIVITY:
        sign = "" if order is RunOrder.OLDEST else "-"
        by_age = Run.objects.order_by(f"{sign}created_at", f"{sign}id")
        wanted = list(by_age.values_list("pk", flat=True))
    pages = _walk(order, size)
    assert [pk for page in pages for pk in page] == wanted
    assert {len(page) for page in pages[:-1]} <= {size}


def test_runs_that_end_while_pages_are_turned_hide_none_that_stay() -> None:
    wanted = _mixed()
    first = selectors.run_list(limit=4, order=RunOrder.ACTIVITY)
    moved = Run.objects.get(pk=wanted[-1])
    make.make_finished(moved)
    second = selectors.run_list(cursor=first.next, limit=20, order=RunOrder.ACTIVITY)
    seen = [run.pk for page in (first, second) for run in page.runs]
    assert seen == [pk for pk in wanted if pk != moved.pk]
    assert moved.pk in [run.pk for run in selectors.run_list(order=RunOrder.ACTIVITY).runs][:3]


def test_a_cursor_leads_on_in_its_own_order_alone() -> None:
    _mixed()
    cursor = selectors.run_list(limit=2, order=RunOrder.ACTIVITY).next
    for other in (RunOrder.NEWEST, RunOrder.OLDEST):
        with pytest.raises(selectors.CursorError):
            selectors.run_list(cursor=cursor, order=other)


def test_a_page_far_back_is_read_from_the_middle_of_an_index() -> None:
    """The position is compared as a row, which an index answers; an OR would read from its top."""
    _mixed()
    for order in RunOrder:
        cursor = selectors.run_list(limit=4, order=order).next
        with CaptureQueriesContext(connection) as caught:
            selectors.run_list(cursor=cursor, order=order)
        assert re.search(r'ROW\([^)]*"id"\) [<>] \(?ROW\(', caught[0]["sql"])


def test_pages_of_runs_hold_each_run_once_also_when_new_ones_come_in_between() -> None:
    known = [make.make_run().pk for _ in range(5)]
    first = selectors.run_list(limit=2)
    make.make_run()
    second = selectors.run_list(cursor=first.next, limit=2)
    third = selectors.run_list(cursor=second.next, limit=2)
    seen = [run.pk for page in (first, second, third) for run in page.runs]
    assert seen == known[::-1]
    assert third.next == ""
    back = selectors.run_list(cursor=third.previous, limit=2)
    assert [run.pk for run in back.runs] == [run.pk for run in second.runs]


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMiwzXQ", "é"])
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(selectors.CursorError):
        selectors.run_list(cursor=cursor)


def test_only_the_latest_verdict_of_a_kernel_counts() -> None:
    kernel = make.make_kernel()
    make.make_finished(make.make_run(kernel), failed=("G1",))
    make.make_finished(make.make_run(kernel))
    (row,) = selectors.suite_overview(kernel.task.suite).tasks
    assert (row.kernels, row.accepted, row.rejected, row.illusions) == (1, 1, 0, 0)


def test_errored_and_cancelled_runs_are_no_verdicts() -> None:
    services.run_cancel(run=make.make_run())
    lease = make.make_lease(make.make_run(max_attempts=1))
    services.run_error(run_id=lease.run.pk, attempt=1, kind=ErrorKind.TASK, message="bad")
    counts = selectors.overview_counts()
    assert (counts.runs.errored, counts.runs.cancelled, counts.verdicts.total) == (1, 1, 0)
