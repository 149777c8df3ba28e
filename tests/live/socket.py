"""A page's end of a socket, without a server. (channels.testing would need daphne.)"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser, User

from kernelhub.live.routing import websocket_urlpatterns

PATIENCE_S = 5.0


class Socket:
    """One connection to our consumers as the given user."""

    def __init__(self, address: str, user: User | None = None) -> None:
        parts = urlsplit(address)
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": [],
            "subprotocols": [],
            "user": user or AnonymousUser(),
        }
        application = URLRouter(websocket_urlpatterns)
        self._app: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]

    async def connect(self) -> None:
        await self._app.send_input({"type": "websocket.connect"})
        assert (await self._app.receive_output(PATIENCE_S))["type"] == "websocket.accept"

    async def said(self, timeout_s: float = PATIENCE_S) -> Any:
        """The next message."""
        output = await self._app.receive_output(timeout_s)
        assert output["type"] == "websocket.send", output
        return json.loads(output["text"])

    async def closed_with(self) -> int:
        """The code that the server closes with."""
        output = await self._app.receive_output(PATIENCE_S)
        assert output["type"] == "websocket.close", output
        return int(output["code"])

    async def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes in that time."""
        return bool(await self._app.receive_nothing(seconds))

    async def say(self, *, text: str | None = None, data: bytes | None = None) -> None:
        await self._app.send_input({"type": "websocket.receive", "text": text, "bytes": data})

    async def disconnect(self) -> None:
        await self._app.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._app.wait(PATIENCE_S)
