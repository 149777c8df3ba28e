"""Waiting for events without keeping a database connection from others meanwhile."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from typing import Any, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import connections
from django.http import HttpRequest
from rest_framework.response import Response

from kernelhub.api.serializers.runs import EventsQuery
from kernelhub.api.views.runs import RunEventsView, event_page

LOOK_S: Final = 2.0
"""How often the database is asked without any hint: hints may be lost, events never are."""

logger = logging.getLogger(__name__)
_view = RunEventsView.as_view()


Hint = Callable[[float], Awaitable[None]]
"""Awaited with seconds: returns when the run may have changed, or when they are over."""


@wraps(_view)
async def run_events(request: HttpRequest, run_id: UUID) -> Response:
    """RunEventsView, which checks and answers, and then the wait if its page is empty."""
    response: Response = await sync_to_async(_checked)(request, run_id)
    if request.method != "GET" or response.status_code != 200 or not _is_empty(response.data):
        return response
    query = _query(request)
    deadline = time.monotonic() + query["wait"]
    async with hints(f"run.{run_id}") as hint:
        # Once more at first: an event may have come between the first look and the hints.
        while (left := deadline - time.monotonic()) > 0:
            response.data = await sync_to_async(_look)(run_id, query)
            if not _is_empty(response.data):
                break
            await hint(min(LOOK_S, left))
    return response


def _checked(request: HttpRequest, run_id: UUID) -> Response:
    response: Response = _view(request, run_id=run_id)
    _release_connections()
    return response


def _release_connections() -> None:
    """Whoever waits keeps no connection from others, as at the end of a request."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def _is_empty(page: dict[str, Any]) -> bool:
    return not page["events"] and not page["done"]


def _query(request: HttpRequest) -> dict[str, Any]:
    """The parameters, which the view has found valid."""
    reader = EventsQuery(data=request.GET.dict())
    reader.is_valid(raise_exception=True)
    return dict(reader.validated_data)


def _look(run_id: UUID, query: dict[str, Any]) -> dict[str, Any]:
    page = event_page(run_id, query)
    _release_connections()
    return page


@asynccontextmanager
async def hints(group: str) -> AsyncIterator[Hint]:
    """Hints of one channel group; plain waiting where the channel layer cannot be reached."""
    layer = get_channel_layer()
    if layer is None:
        yield asyncio.sleep
        return
    try:
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
    except Exception as error:  # noqa: BLE001 - any broker failure: the database has the record
        logger.warning("no hints for %s: %s", group, error)
        yield asyncio.sleep
        return
    try:
        yield partial(_receive, layer, channel)
    finally:
        with suppress(Exception):
            await layer.group_discard(group, channel)


async def _receive(layer: Any, channel: str, timeout_s: float) -> None:
    """Wait for one message. A broker that fails costs the hint and not the wait."""
    started = time.monotonic()
    try:
        await asyncio.wait_for(layer.receive(channel), timeout_s)
    except TimeoutError:
        return
    except Exception as error:  # noqa: BLE001 - as above
        logger.warning("hints are gone: %s", error)
        await asyncio.sleep(max(0.0, timeout_s - (time.monotonic() - started)))
