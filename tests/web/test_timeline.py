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
    assert (found.what, found.text, found.tone) == ("gate 10", "fail: nan at [0, 0]", "fail")


def test_a_compile_error_says_its_cause() -> None:
    head = "Triton's compiler refuses f: CompilationError: at 2:4:"
    reason = f"{head}\n  y = X\n      ^\nNameError('X')"
    found = line("gate", gate="G12", status="FAIL", reason=reason)
    assert found.text == f"fail: {head} NameError('X')"


def happened(kind: str, at_s: float, **payload: Any) -> SampleEvent:
    return SampleEvent(kind, payload, START + timedelta(seconds=at_s))


def test_a_fault_that_meets_all_gates_is_said_once_in_each_attempt() -> None:
    gates = [
        happened("gate", 1, gate=f"G{number}", status="FAIL", reason="SyntaxError: '(' in line 1")
        for number in (1, 2, 3)
    ]
    lease = happened("leased", 0, node="n1", attempt=1)
    texts = [one.text for one in timeline([lease, *gates, lease, *gates[:1]], START)]
    assert texts[1:4] == ["fail: SyntaxError: '(' in line 1", *["fail: same as gate 1"] * 2]
    assert texts[5] == texts[1]


def test_each_attempt_counts_from_its_start_and_the_wait_is_said_once() -> None:
    events = [
        happened("queued", 0),
        happened("leased", 402, node="n1", attempt=1),
        happened("gate", 403.5, gate="G1", status="PASS"),
        happened("requeued", 410, reason="silent"),
        happened("leased", 412, node="n2", attempt=2),
        happened("gate", 412.25, gate="G1", status="PASS"),
    ]
    lines = timeline(events, START)
    offsets = [one.offset for one in lines]
    assert offsets == ["", "0.000 s", "1.500 s", "8.000 s", "0.000 s", "0.250 s"]
    assert lines[1].text == "leased to node n1, attempt 1, after 6.7 min in the queue"
    assert lines[4].text.endswith("after 2.000 s in the queue")


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
