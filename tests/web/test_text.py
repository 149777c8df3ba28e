"""Untrusted text."""

from __future__ import annotations

import pytest

from kernelhub.web.text import one_line, spreadsheet_safe, strip_control


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bcharset", "charset"),
        ("bell\x07 back\x08", "bell back"),
        ("a\u202eb\u2066c", "abc"),
        ("10%\r20%", "10%\n20%"),
        ("tab\tstays\nnewline too", "tab\tstays\nnewline too"),
        ("a lone escape\x1b", "a lone escape"),
    ],
)
def test_terminal_codes_and_control_characters_go(text: str, plain: str) -> None:
    assert strip_control(text) == plain


def test_a_megabyte_of_escapes_is_stripped_in_linear_time() -> None:
    assert strip_control("\x1b[" * 500_000) == ""


def test_one_line_keeps_the_first_line_and_shortens_it() -> None:
    assert one_line("\n first \nsecond") == "first"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert one_line("") == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@cmd", "\tx"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(text: str) -> None:
    assert spreadsheet_safe(text) == f"'{text}"


def test_a_number_stays_a_number_in_a_spreadsheet() -> None:
    assert spreadsheet_safe(-1.5) == -1.5
