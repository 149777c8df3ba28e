"""What a person sees, on a terminal and where there is none."""

from __future__ import annotations

import io
import sys

import pytest

from kernelhub.launch.terminal import ProgressBar, say, table


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
