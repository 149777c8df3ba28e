"""A change is published after its commit, and never in the way of it."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from django.test import override_settings

from kernelhub.core import services
from kernelhub.core.events import RunChange, run_changed
from kernelhub.core.models import Run
from kernelhub.settings.redis_layer import channel_layers
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard() -> Any:
    changes: list[RunChange] = []

    def listen(change: RunChange, **_: Any) -> None:
        changes.append(change)

    run_changed.connect(listen)
    yield changes
    run_changed.disconnect(listen)


def test_each_change_is_published_with_the_number_of_its_last_event(heard: list[RunChange]) -> None:
    run = make.make_run()
    services.run_cancel(run=run)
    assert [(change.run_id, change.seq) for change in heard] == [(run.pk, 1), (run.pk, 3)]


def test_nothing_is_published_of_a_change_that_is_rolled_back(heard: list[RunChange]) -> None:
    kernel = make.make_kernel()

    with transaction.atomic():
        make.make_run(kernel)
        transaction.set_rollback(True)
    assert heard == []


def test_the_pages_of_run_campaign_and_overview_are_told() -> None:
    layer = get_channel_layer()
    assert layer is not None
    campaign, run = make.make_campaign(), None
    kernel = make.make_kernel()
    groups = ["overview", f"campaign.{campaign.pk}"]
    for group in groups:
        async_to_sync(layer.group_add)(group, f"page.{group}")
    run = make.make_run(kernel, campaign=campaign)
    for group in groups:
        message = async_to_sync(layer.receive)(f"page.{group}")
        assert message == {"type": "run.changed", "run": str(run.pk), "seq": 1}


@override_settings(CHANNEL_LAYERS=channel_layers("redis://127.0.0.1:1/0"))
def test_a_change_is_stored_while_redis_is_down() -> None:
    run = make.make_finished()
    assert Run.objects.get(pk=run.pk).status == "finished"


def test_a_receiver_that_fails_does_not_fail_the_change() -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("no")

    run_changed.connect(fail)
    try:
        assert make.make_run().status == "queued"
    finally:
        run_changed.disconnect(fail)
