"""Kernel source as highlighted HTML with line numbers."""

from __future__ import annotations

from typing import Final

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer
from pygments.lexers.special import TextLexer

from kernelhub.web.text import strip_control

LIMIT_CHARS: Final = 200_000
"""Beyond this, colouring costs more than it helps; the rest is in the download."""


def source_html(source: str, language: str) -> SafeString:
    """The source as an HTML table of line numbers and code. Pygments escapes what it is given."""
    shown = strip_control(source[:LIMIT_CHARS])
    formatter = HtmlFormatter(linenos="table", cssclass="source", lineanchors="L", wrapcode=True)
    return mark_safe(highlight(shown, _lexer(shown, language), formatter))  # noqa: S308


def is_cut(source: str) -> bool:
    """Whether the page shows only the beginning."""
    return len(source) > LIMIT_CHARS


def _lexer(source: str, language: str) -> Lexer:
    # A lexer's regular expressions may be slow on a hostile megabyte-long line.
    if any(len(line) > 5_000 for line in source.splitlines()):
        return TextLexer(stripnl=False)
    if language == "cuda" and "def run" not in source:
        chosen: Lexer = CudaLexer(stripnl=False)
    else:
        chosen = PythonLexer(stripnl=False)
    return chosen
