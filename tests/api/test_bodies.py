"""Bodies that are too large never reach the application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from kernelhub.bodies import PATIENCE, BodyLimit, Message, Receive, Scope, Send

LIMIT = 10


class Application:
    """Keeps whatever it is sent, as Django does."""

    def __init__(self) -> None:
        self.kept = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            self.kept += message["body"]
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Exchange:
    """One request against the limited application."""

    def __init__(self, chunks: Iterable[bytes], declared: int | None = None) -> None:
        self.app, self.sent, self.read = Application(), [], 0
        self._chunks = list(chunks)
        length = [] if declared is None else [(b"content-length", str(declared).encode())]
        scope = {"type": "http", "headers": length}
        asyncio.run(BodyLimit(self.app, LIMIT)(scope, self._receive, self._send))

    sent: list[Message]

    async def _receive(self) -> Message:
        self.read += 1
        more = self.read < len(self._chunks)
        return {"type": "http.request", "body": self._chunks[self.read - 1], "more_body": more}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def document(self) -> Any:
        return json.loads(self.sent[1]["body"])


def test_a_body_within_the_limit_goes_through() -> None:
    exchange = Exchange([b"12345", b"67890"], declared=10)
    assert (exchange.status, exchange.app.kept) == (200, b"1234567890")


def test_a_declared_length_beyond_the_limit_is_refused_unseen() -> None:
    exchange = Exchange([b"x" * 11], declared=11)
    assert (exchange.status, exchange.app.kept) == (413, b"")
    assert exchange.document["type"] == "urn:kernelhub:problem:too-large"


def test_a_body_that_outgrows_its_length_is_cut_off() -> None:
    exchange = Exchange([b"x" * 6] * 3, declared=5)
    assert exchange.status == 413
    assert len(exchange.app.kept) <= LIMIT


def test_a_body_without_a_length_is_counted() -> None:
    exchange = Exchange([b"x" * 6] * 3)
    assert exchange.status == 413


def test_the_sender_is_heard_out_within_bounds() -> None:
    brief = Exchange([b"x" * 6] * 5)
    endless = Exchange([b"x" * 6] * 1000)
    assert brief.read == 5
    assert endless.read <= 2 + (PATIENCE + 1) * LIMIT // 6
