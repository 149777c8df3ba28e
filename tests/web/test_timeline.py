"""Events in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kernelhub.core.events import EventKind
from kernelhub.web.timeline import WORDS, log_text, timeline

START = datetime(2026, 11, 30, tzinfo=UTC)


@dataclass
class SampleEvent:
    kind: str
    payload: Any
    created_at: datetime = START + timedelta(seconds=1.5)


def line(kind: str, **payload: Any) -> Any:
    return timeline([SampleEvent(kind, payload)], START)[0]


def test_a_gate_says_its_number_its_finding_and_its_reason() -> None:
    found = line("gate", gate="G10", status="FAIL", reason="nan at [0, 0]\nmore")
    assert (found.offset, found.what, found.text, found.tone) == (
        "1.500 s",
        "gate 10",
        "fail: nan at [0, 0]",
        "fail",
    )


def test_a_lost_attempt_is_our_fault_and_looks_like_it() -> None:
    found = line("attempt_lost", node="n1", attempt=1, reason="silent")
    assert (found.text, found.tone) == ("attempt 1 on n1: silent", "error")


def test_a_verdict_names_the_gates_that_failed() -> None:
    found = line("verdict", outcome="rejected", illusion=True, failed_gates=["G2", "G10"])
    assert found.text == "rejected, an illusion; failed: 2 Non-finite, 10 Range"


@pytest.mark.parametrize(
    "kind", [kind for kind in EventKind if kind not in ("log", "gate_started")]
)
def test_every_kind_has_words_and_survives_an_empty_payload(kind: EventKind) -> None:
    assert kind in WORDS
    assert line(kind).what


@pytest.mark.parametrize("payload", [None, [], "text", 3])
def test_a_payload_of_another_type_breaks_no_page(payload: Any) -> None:
    assert timeline([SampleEvent("gate", payload)], START)[0].tone == ""


def test_log_lines_are_joined_without_terminal_codes() -> None:
    events = [SampleEvent("log", {"text": "\x1b[31ma\x1b[0m"}), SampleEvent("log", {"text": "b\n"})]
    assert log_text(events) == "a\nb\n"
