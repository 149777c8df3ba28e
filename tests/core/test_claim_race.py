"""Many agents ask at the same moment: real connections, real locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from kernelhub.core import services
from kernelhub.core.choices import ErrorKind, RunStatus
from kernelhub.core.models import Event, Verdict
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)

Answer = TypeVar("Answer")


def at_once(calls: list[Callable[[], Answer]]) -> list[Answer]:
    """Every call in a thread and a connection of its own, started together."""
    together = threading.Barrier(len(calls))

    def call(function: Callable[[], Answer]) -> Answer:
        together.wait()
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def test_one_run_is_leased_to_one_of_many_claimers() -> None:
    run = make.make_run()
    nodes = [make.make_node() for _ in range(6)]
    leases = at_once([lambda node=node: services.run_claim(node=node) for node in nodes])  # type: ignore[misc]
    (lease,) = [lease for lease in leases if lease is not None]
    assert (lease.run.pk, lease.attempt) == (run.pk, 1)
    assert Event.objects.filter(run=run, kind="leased").count() == 1


def test_claimers_at_the_same_moment_get_different_runs() -> None:
    runs = {make.make_run().pk for _ in range(4)}
    nodes = [make.make_node() for _ in range(4)]
    leases = at_once([lambda node=node: services.run_claim(node=node) for node in nodes])  # type: ignore[misc]
    claimed = [lease.run.pk for lease in leases if lease is not None]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= runs
    assert claimed


def test_a_verdict_posted_many_times_at_once_is_stored_once() -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(lease.run)

    def finish() -> Verdict:
        return services.run_finish(run_id=lease.run.pk, attempt=1, verdict=verdict)

    assert len({one.pk for one in at_once([finish] * 4)}) == 1
    assert Event.objects.filter(run=lease.run, kind="finished").count() == 1


def test_a_cancel_and_a_verdict_at_the_same_moment_leave_one_end() -> None:
    lease = make.make_lease()
    verdict = make.verdict_record(lease.run)

    def finish() -> bool:
        try:
            services.run_finish(run_id=lease.run.pk, attempt=1, verdict=verdict)
        except services.FencedError:
            return False
        return True

    finished, cancelled = at_once([finish, lambda: services.run_cancel(run=lease.run)])
    lease.run.refresh_from_db()
    assert finished is not cancelled
    assert lease.run.status == (RunStatus.FINISHED if finished else RunStatus.CANCELLED)
    assert Verdict.objects.filter(run=lease.run).exists() is finished


def test_the_same_fault_reported_many_times_at_once_costs_one_attempt() -> None:
    lease = make.make_lease()

    def fault() -> int:
        run = services.run_error(
            run_id=lease.run.pk, attempt=1, kind=ErrorKind.INFRASTRUCTURE, message="no GPU"
        )
        return run.lost_attempts

    assert at_once([fault] * 4) == [1] * 4


def test_one_idempotency_key_used_many_times_at_once_makes_one_run() -> None:
    kernel = make.make_kernel()

    def enqueue() -> object:
        return make.make_run(kernel, idempotency_key="k").pk

    assert len(set(at_once([enqueue] * 4))) == 1
