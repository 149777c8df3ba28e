"""Hints: 'something changed'. Any number of them is one raised flag, so they never pile up."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)

RETRY_S: Final = 2.0


class Hints:
    """Listens to one group of the channel layer and survives the layer's outages.

    The consumer's own poll makes up for hints that were lost, so nothing here is a record.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        """Raises the flag for each message, for ever; connects again after a failure."""
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # noqa: BLE001 - any broker failure; the poll carries on
                log.warning("no hints for %s: %s", self.group, error)
            await asyncio.sleep(RETRY_S)

    async def _listen_once(self) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        channel = await layer.new_channel()
        await layer.group_add(self.group, channel)
        try:
            while True:
                await layer.receive(channel)
                self._changed.set()
        finally:
            await layer.group_discard(self.group, channel)

    async def wait(self, timeout_s: float) -> None:
        """Returns on a hint or after the timeout, and takes the flag down."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()
