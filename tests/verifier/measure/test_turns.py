"""Interleaving."""

from __future__ import annotations

from collections import Counter

from verifier.measure.turns import turns

NAMES = ("kernel", "eager", "compile", "nothing")


def test_every_subject_has_one_short_and_one_long_run_in_each_repeat() -> None:
    counts = Counter((turn.repeat, turn.subject, turn.long) for turn in turns(NAMES, 3))
    assert set(counts.values()) == {1}
    assert len(counts) == 3 * 4 * 2


def test_subjects_take_turns_and_no_run_follows_one_of_its_own_length_and_subject() -> None:
    order = [turn.subject for turn in turns(NAMES, 1)]
    assert order == [*NAMES, *NAMES]


def test_no_subject_is_always_first() -> None:
    first = {turn.repeat: turn.subject for turn in reversed(list(turns(NAMES, 3)))}
    assert len(set(first.values())) == 3


def test_long_runs_come_first_in_every_other_repeat() -> None:
    seen = {turn.repeat: turn.long for turn in reversed(list(turns(NAMES, 3)))}
    assert seen == {0: False, 1: True, 2: False}
