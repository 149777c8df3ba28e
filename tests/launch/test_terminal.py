"""What a person sees, on a terminal and where there is none."""

from __future__ import annotations

import io
import sys

import pytest

from kernelhub.launch.terminal import ProgressBar, fitted, say, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_went_away_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    say("still serving")


def test_a_terminal_gets_one_line_drawn_over_itself() -> None:
    out = Terminal()
    bar = ProgressBar(out)
    bar.show(done=1, total=4, note="1 accepted")
    bar.show(done=4, total=4, note="4 accepted")
    bar.close()
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().count("\r") == 2
    assert "[##############################] 4/4 4 accepted" in out.getvalue()


NOTE = "44/95 23 accepted, 21 rejected, 0 undecided, 14 illusions, 2 errored"


@pytest.mark.parametrize("columns", range(200))
def test_the_line_is_never_wider_than_the_terminal(columns: int) -> None:
    assert len(fitted(44, 95, NOTE, columns)) <= columns


def test_the_bar_gives_way_before_the_words_do() -> None:
    assert fitted(44, 95, NOTE, 120).startswith("[##############................] 44/95")
    assert fitted(44, 95, NOTE, len(NOTE) + 13) == f"[#####.....] {NOTE}"
    assert fitted(44, 95, NOTE, len(NOTE) + 12) == NOTE


def test_a_narrow_terminal_loses_whole_words_and_shows_that_it_did() -> None:
    assert fitted(44, 95, NOTE, 40) == "44/95 23 accepted, 21 rejected, 0 ..."
    assert fitted(44, 95, NOTE, 3) == "44/"


def test_the_bar_is_drawn_as_wide_as_the_terminal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    ProgressBar(out).show(done=1, total=95, note=NOTE)
    assert len(out.getvalue().removeprefix("\r\x1b[K")) <= 59


def test_a_file_gets_plain_lines_and_the_last_one_always() -> None:
    out = io.StringIO()
    bar = ProgressBar(out)
    for done in range(4):
        bar.show(done=done, total=3, note="judging")
    assert out.getvalue().splitlines() == [
        "kernelhub: judged 0/3 judging",
        "kernelhub: judged 3/3 judging",
    ]


def test_an_unchanged_state_is_not_drawn_again() -> None:
    out = Terminal()
    bar = ProgressBar(out)
    for _ in range(3):
        bar.show(done=1, total=4, note="same")
    assert out.getvalue().count("\r") == 1


def test_no_runs_at_all_is_no_division_by_zero() -> None:
    out = Terminal()
    ProgressBar(out).show(done=0, total=0, note="nothing to judge")
    assert "0/0 nothing to judge" in out.getvalue()


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    text = table(("task", "verdict"), [("softmax", "accepted"), ("x", "rejected")])
    assert text.splitlines() == [
        "task     verdict",
        "-------  --------",
        "softmax  accepted",
        "x        rejected",
    ]
