"""What a person sees: plain lines, and a bar where the output is a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TextIO

BAR_MAX: Final = 30
BAR_MIN: Final = 10
CUT: Final = " ..."
PLAIN_STEP_S: Final = 10.0
"""How often a log file, which cannot be overwritten, gets a line of progress."""


def say(text: str) -> None:
    """One line for the person who watches; nobody watching is no reason to stop serving."""
    with suppress(OSError):  # a closed terminal, a pipe without a reader, a full disk
        print(f"kernelhub: {text}", flush=True)  # noqa: T201 - this is the interface


def complain(text: str) -> None:
    """The one line that says why the launch cannot go on."""
    with suppress(OSError):
        print(f"kernelhub: {text}", file=sys.stderr, flush=True)  # noqa: T201


@dataclass(slots=True)
class ProgressBar:
    """One line that is drawn over itself; lines now and then where that cannot be."""

    out: TextIO = sys.stdout
    _drawn: str = ""
    _said_s: float = float("-inf")

    def show(self, *, done: int, total: int, note: str) -> None:
        text = f"{done}/{total} {note}"
        if text == self._drawn:
            return
        if self.out.isatty():
            self._draw(done, total, text)
        elif done == total or time.monotonic() - self._said_s >= PLAIN_STEP_S:
            self._said_s = time.monotonic()
            print(f"kernelhub: judged {text}", file=self.out, flush=True)
        self._drawn = text

    def close(self) -> None:
        if self._drawn and self.out.isatty():
            print(file=self.out, flush=True)

    def _draw(self, done: int, total: int, text: str) -> None:
        line = fitted(done, total, text, columns() - 1)  # a full last column would wrap
        print(f"\r\x1b[K{line}", end="", file=self.out, flush=True)


def columns() -> int:
    """How wide the terminal is; 80 where there is none."""
    return shutil.get_terminal_size().columns


def fitted(done: int, total: int, text: str, columns: int) -> str:
    """Bar and text in so many columns: the bar gives way first, then words from the end."""
    width = min(BAR_MAX, columns - len(text) - len("[] "))
    if width < BAR_MIN:
        return shortened(text, columns)
    filled = round(width * done / total) if total else width
    return f"[{'#' * filled}{'.' * (width - filled)}] {text}"


def shortened(text: str, columns: int) -> str:
    """The text, cut between two of its words where it is too long, with a mark that it was."""
    if len(text) <= columns:
        return text
    kept = text[: max(0, columns - len(CUT) + 1)].rpartition(" ")[0].rstrip(",;: ")
    return f"{kept}{CUT}" if kept else text[:columns]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def first_that_fits(tables: Iterable[str], columns: int) -> str:
    """The first table that is no wider than that; the last one with its long lines cut."""
    text = ""
    for text in tables:
        if max(map(len, text.splitlines()), default=0) <= columns:
            return text
    return "\n".join(shortened(line, columns) for line in text.splitlines())
