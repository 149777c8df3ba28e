"""The hub's side of waking nodes: messages are hints, and the clock makes up for lost ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import Celery
from django.utils import timezone

from gpu_runner import clock, dispatch
from kernelhub.core import services
from kernelhub.core.models import Run
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Celery]:
    """The current Celery application, with the broker that the test names."""
    url = getattr(request, "param", "memory://")
    app = Celery("dispatch-test", broker=url, fixups=[])
    app.set_current()
    dispatch._broken_until = 0.0
    yield app
    dispatch._broken_until = 0.0
    from kernelhub.celery import app as ours

    ours.set_current()


DEAD = pytest.mark.parametrize("broker", ["redis://127.0.0.1:1/0"], indirect=True)


def test_a_waiting_run_is_sent_once_to_each_queue_that_may_judge_it(broker: Celery) -> None:
    make.make_node(queue="cpu-interpret")
    run = make.make_run()
    run.refresh_from_db()
    assert run.dispatched_at is not None
    with broker.connection_for_read() as connection:
        message = connection.SimpleQueue("cpu-interpret").get(timeout=1)
    assert message.headers["task"] == "gpu_runner.take"
    assert dispatch.dispatch_waiting() == 0


def test_a_message_that_led_to_nothing_is_sent_again(broker: Celery) -> None:
    run = make.make_run()
    long_ago = timezone.now() - timedelta(seconds=dispatch.AGAIN_S + 1)
    Run.objects.filter(pk=run.pk).update(dispatched_at=long_ago)
    assert dispatch.dispatch_waiting() == 1


@DEAD
def test_a_dead_broker_neither_fails_nor_delays_a_submission(broker: Celery) -> None:
    kernel = make.make_kernel()
    begun = time.monotonic()
    run = make.make_run(kernel, queue="cpu-interpret")
    assert time.monotonic() - begun < 4
    run.refresh_from_db()
    assert (run.status, run.dispatched_at) == ("queued", None)


@DEAD
def test_the_clock_sends_what_a_dead_broker_did_not_take(broker: Celery) -> None:
    make.make_run(queue="cpu-interpret")
    Celery("recovered", broker="memory://", fixups=[]).set_current()
    dispatch._broken_until = 0.0
    assert clock.tick().dispatched == 1


def test_the_clock_reaps_and_sends_the_run_again(broker: Celery) -> None:
    lease = make.make_lease()
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert clock.tick().reaped == 1
    lease.run.refresh_from_db()
    assert lease.run.status == "queued"
    assert lease.run.dispatched_at is not None


@DEAD
def test_the_clock_reaps_without_a_broker(broker: Celery) -> None:
    lease = make.make_lease()
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert clock.tick().reaped == 1
    assert services.run_claim(node=make.make_node(), run_id=lease.run.pk) is not None
