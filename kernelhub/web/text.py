"""Untrusted text made printable. HTML escaping stays with the templates."""

from __future__ import annotations

import re
from typing import Final

from verifier.wording import in_one_line, shortened

# OSC (titles, hyperlinks) first, then CSI (colours, cursor), then any other two-byte escape.
_ANSI: Final = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
)
# Everything that is no text: C0 but tab and newline, DEL, C1, and the marks that reorder text.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def strip_control(text: str) -> str:
    """The text without terminal escapes, control characters and bidirectional overrides.

    A carriage return becomes a newline, as a terminal's progress bar means it.
    """
    plain = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", plain)


def one_line(text: str, limit: int = 200) -> str:
    """The first line of the text, shortened with an ellipsis."""
    lines = strip_control(text).strip().splitlines()
    return shortened(lines[0].strip() if lines else "", limit)


def reason_line(text: str, limit: int = 200) -> str:
    """A reason in one line that says what is wrong, however many lines it has."""
    return in_one_line(strip_control(text), limit)


def spreadsheet_safe(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets a quote in front."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
