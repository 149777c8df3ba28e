"""ASGI: bodies that are too large are refused before they reach memory or disk.

Django keeps the whole body, on disk if need be, before any view or parser sees the request.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from kernelhub.api.parsers import MAX_BODY_NBYTES, too_large
from kernelhub.api.problems import MEDIA_TYPE, problem_document

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

PATIENCE: Final = 16
"""So many times the limit is read and thrown away before the connection is closed on the sender."""

_LENGTH: Final = b"content-length"


class _TooLargeError(Exception):
    """More came than is taken."""


class BodyLimit:
    """Wraps an ASGI application; answers 413 with a problem document by itself."""

    def __init__(self, app: Application, limit_nbytes: int = MAX_BODY_NBYTES) -> None:
        self._app = app
        self._limit_nbytes = limit_nbytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _declared_nbytes(scope) > self._limit_nbytes:
            await self._refuse(receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A body without a length, or with a false one, is counted as it comes."""
        left = self._limit_nbytes

        async def count() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise _TooLargeError
            return message

        try:
            await self._app(scope, count, send)
        except _TooLargeError:
            await self._refuse(receive, send)

    async def _refuse(self, receive: Receive, send: Send) -> None:
        """Hear the sender out, within bounds: most clients read no answer while they send."""
        left = PATIENCE * self._limit_nbytes
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                break
        await _answer(send)


def _declared_nbytes(scope: Mapping[str, Any]) -> int:
    for name, value in scope["headers"]:
        if name == _LENGTH and value.isdigit():
            return int(value)
    return 0


async def _answer(send: Send) -> None:
    problem = too_large()
    body = json.dumps(problem_document(problem.kind, str(problem.detail))).encode()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": problem.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
