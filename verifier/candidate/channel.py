"""Length-prefixed JSON over a Unix socket, with file descriptors riding along where asked for.

Both the referee and the untrusted host use it, so whoever reads trusts nothing: frames are capped,
what does not parse raises ProtocolError, and descriptors are taken only by ``receive(fds=True)``.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

MESSAGE_BYTES: Final = 8 << 20
MAX_FDS: Final = 4
HEADER: Final = struct.Struct(">I")

Watch = Mapping[int, Callable[[], None]]
"""Other descriptors to serve while waiting, each with what to do when it can be read."""


class ProtocolError(RuntimeError):
    """The peer sent something that is no message."""


class ChannelClosedError(ProtocolError):
    """The peer closed its end, or died."""


class DeadlineError(RuntimeError):
    """Nothing came in time."""


@dataclass(frozen=True, slots=True)
class Message:
    body: dict[str, Any]
    fds: tuple[int, ...] = ()


class Channel:
    """One end of a connection; owns its socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    @classmethod
    def from_fd(cls, fd: int) -> Channel:
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def hang_up(self) -> None:
        """Nothing more comes from either end; whoever waits for a message, in any thread, hears of
        that, which ``close`` does not see to."""
        with suppress(OSError):  # it is closed
            self._sock.shutdown(socket.SHUT_RDWR)

    def send(
        self, body: Mapping[str, Any], fds: Sequence[int] = (), deadline: float | None = None
    ) -> None:
        """Send one message. Raises ChannelClosedError, DeadlineError, ProtocolError if too big."""
        payload = json.dumps(body).encode()
        if len(payload) > MESSAGE_BYTES:
            raise ProtocolError(f"message of {len(payload)} bytes")
        data = memoryview(HEADER.pack(len(payload)) + payload)
        while data:
            sent = self._send_some(data, fds)
            if not sent:
                self._wait(select.POLLOUT, deadline, {})
                continue
            fds, data = (), data[sent:]

    def _send_some(self, data: memoryview, fds: Sequence[int]) -> int:
        try:
            return socket.send_fds(self._sock, [data], list(fds)) if fds else self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def receive(
        self, deadline: float | None = None, watch: Watch | None = None, *, fds: bool = False
    ) -> Message:
        """The next message. Raises ChannelClosedError, DeadlineError or ProtocolError.

        ``deadline`` is a time.monotonic() value. Without ``fds`` the kernel drops any descriptor
        that the peer attached.
        """
        watch = watch or {}
        self._wait(select.POLLIN, deadline, watch)
        header, passed = self._read(HEADER.size, deadline, watch, fds)
        (size,) = HEADER.unpack(header)
        if size > MESSAGE_BYTES:
            raise ProtocolError(f"announces a message of {size} bytes")
        payload, _ = self._read(size, deadline, watch, False)
        return Message(_parse(payload), passed)

    def _read(
        self, size: int, deadline: float | None, watch: Watch, fds: bool
    ) -> tuple[bytes, tuple[int, ...]]:
        data = bytearray()
        passed: tuple[int, ...] = ()
        while len(data) < size:
            part, new = self._read_some(size - len(data), fds)
            if part is None:
                self._wait(select.POLLIN, deadline, watch)
                continue
            data += part
            passed += new
        return bytes(data), passed

    def _read_some(self, size: int, fds: bool) -> tuple[bytes | None, tuple[int, ...]]:
        """Some bytes and descriptors; None if nothing is there yet."""
        new: Sequence[int] = ()
        try:
            if fds:
                part, new, _, _ = socket.recv_fds(self._sock, size, MAX_FDS)
            else:
                part = self._sock.recv(min(size, 1 << 20))
        except BlockingIOError:
            return None, ()
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not part:
            raise ChannelClosedError("closed")
        return part, tuple(new)

    def pending(self) -> bool:
        """True if the peer has sent something that nobody asked for (or has closed)."""
        return bool(select.select([self._sock], [], [], 0)[0])

    def _wait(self, event: int, deadline: float | None, watch: Watch) -> None:
        poll = select.poll()
        poll.register(self._sock, event)
        for fd in watch:
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(_left_ms(deadline))}
            for fd in ready & watch.keys():
                watch[fd]()
            if self._sock.fileno() in ready:
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise DeadlineError


def _left_ms(deadline: float | None) -> int | None:
    return None if deadline is None else max(0, int((deadline - time.monotonic()) * 1000) + 1)


def _parse(payload: bytes) -> dict[str, Any]:
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise ProtocolError("not an object")
    return body
