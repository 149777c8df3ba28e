"""Sockets of the live pages: check permission, catch up from a sequence number, forward.

The database is the record and the channel layer only a hint, so a consumer reads what is new
after its own last number whenever it is woken, and every few seconds in any case: a broker that
drops everything costs a delay and no event. A slow reader stops its own reading loop and nothing
piles up for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from kernelhub.live import selectors
from kernelhub.live.hints import Hints

log = logging.getLogger(__name__)

POLL_S: Final = 2.0
"""How late an event may be when no hint arrives."""
QUIET_POLL_S: Final = 5.0
"""The same for pages that only count."""
THROTTLE_S: Final = 1.0
"""Counting pages are told at most this often."""
BATCH: Final = 100
"""Events in one message; the rest follows when the reader has taken these."""

FORBIDDEN: Final = 4403
NOT_FOUND: Final = 4404
BROKEN: Final = 1011
COMPLETE: Final = 1000


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """What the live pages share: permission, two background tasks, and no words from the page."""

    channel_layer_alias = ""  # Hints holds the layer, so that a page opens while the broker is down
    poll_s: ClassVar[float] = QUIET_POLL_S

    async def connect(self) -> None:
        await self.accept()
        user: Any = self.scope.get("user")
        if not await database_sync_to_async(selectors.may_read)(user):
            await self.close(FORBIDDEN)
            return
        self.hints = Hints(self.group())
        self._tasks = [
            asyncio.create_task(self.hints.listen()),
            asyncio.create_task(self._stream_guarded()),
        ]

    async def disconnect(self, code: int) -> None:
        tasks = getattr(self, "_tasks", [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        """Pages only listen."""

    async def _stream_guarded(self) -> None:
        """A broken stream closes the socket, so that the page says so and connects again."""
        try:
            await self.stream()
        except Exception as error:  # noqa: BLE001 - whatever it was, the page must learn of it
            log.warning("live page %s broke: %s", self.group(), error)
            with contextlib.suppress(Exception):
                await self.close(BROKEN)

    def group(self) -> str:
        raise NotImplementedError

    async def stream(self) -> None:
        raise NotImplementedError


class RunConsumer(LiveConsumer):
    """`/ws/runs/<uuid>/?after=SEQ`: every event after SEQ, in order, once; then the end."""

    def group(self) -> str:
        return f"run.{self.scope['url_route']['kwargs']['pk']}"

    async def stream(self) -> None:
        after = after_of(self.scope.get("query_string", b""))
        run_id = self.scope["url_route"]["kwargs"]["pk"]
        while True:
            batch = await database_sync_to_async(selectors.run_batch)(run_id, after, BATCH)
            if batch is None:
                await self.close(NOT_FOUND)
                return
            if batch.events:
                after = batch.events[-1]["seq"]
                await self.send_json({"type": "events", "events": batch.events, "seq": after})
            if batch.ended and after >= batch.last_seq:
                await self.send_json({"type": "end", "status": batch.status})
                await self.close(COMPLETE)
                return
            if after >= batch.last_seq:
                await self.hints.wait(POLL_S)


class CountingConsumer(LiveConsumer):
    """Says what stands, whenever it changed and at most once a second."""

    async def stream(self) -> None:
        told: object = None
        while True:
            standing = await database_sync_to_async(self.standing)()
            if standing is None:
                await self.close(NOT_FOUND)
                return
            if standing != told:
                told = standing
                await self.send_json({"type": "changed", "standing": standing})
            await asyncio.sleep(THROTTLE_S)
            await self.hints.wait(QUIET_POLL_S)

    def standing(self) -> dict[str, int] | None:
        raise NotImplementedError


class OverviewConsumer(CountingConsumer):
    """`/ws/overview/`: how many runs stand where, over the whole hub."""

    def group(self) -> str:
        return "overview"

    def standing(self) -> dict[str, int] | None:
        return selectors.overview_standing()


class CampaignConsumer(CountingConsumer):
    """`/ws/campaigns/<uuid>/`: how far one campaign is."""

    def group(self) -> str:
        return f"campaign.{self.scope['url_route']['kwargs']['pk']}"

    def standing(self) -> dict[str, int] | None:
        return selectors.campaign_standing(self.scope["url_route"]["kwargs"]["pk"])


def after_of(query_string: bytes) -> int:
    """The number in `after=`; 0, which is everything, for anything that is no number."""
    text = parse_qs(query_string.decode("ascii", "replace")).get("after", ["0"])[-1]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
