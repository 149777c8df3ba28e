"""What a kernel printed: its beginning and its end, never more than a fixed size."""

from __future__ import annotations

import fcntl
import os
from typing import Final

_READ_BYTES: Final = 1 << 20
_PIPE_BYTES: Final = 1 << 20


class LogPipe:
    """The read end of a pipe; keeps head and tail of what came through and counts the rest."""

    def __init__(self, keep_bytes: int) -> None:
        self.fd, self.write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.write_fd, True)
        _grow(self.fd)
        self._half = keep_bytes // 2
        self._head, self._tail = bytearray(), bytearray()
        self._total = 0

    def drain(self) -> None:
        """Take what there is now, one chunk, without waiting. Does nothing once closed."""
        if self.fd < 0:
            return
        try:
            self._add(os.read(self.fd, _READ_BYTES))
        except BlockingIOError:
            return

    def _add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - self._half)]

    @property
    def dropped_bytes(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def text(self) -> str:
        """Head and tail as text; what is no UTF-8 is shown as replacement characters."""
        gap = f"\n[... {self.dropped_bytes} bytes dropped ...]\n" if self.dropped_bytes else ""
        head, tail = (bytes(part).decode(errors="replace") for part in (self._head, self._tail))
        return head + gap + tail

    def close_write(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def close(self) -> None:
        self.close_write()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _grow(fd: int) -> None:
    """A bigger pipe saves system calls; an unprivileged user may be over his allowance."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        return
