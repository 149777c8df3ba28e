"""Timing a kernel in its sandbox: what travels, what is believed, what gives a liar away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from verifier.candidate.client import Candidate, Demanded, Sandbox
from verifier.candidate.stopwatch import Setup, Tape, turned
from verifier.candidate.timed import CaughtError, NoGraphError, TimedCandidate, TimingError
from verifier.session import Session
from verifier.subject import Reply, ReplyKind

KEY = (0x9E3779B97F4A7C15, 99)
X = torch.arange(1.0, 7.0)
HONEST = b"def run(x):\n    return x * 2\n"
LATE = b"""
import torch
import verifier.candidate.stopwatch as stopwatch

def run(x):
    return torch.zeros_like(x)

def reveal(self, call):
    return (torch.ones(6),)

stopwatch.Stopwatch.reveal = reveal
"""
Time = Callable[[bytes], TimedCandidate]


@pytest.fixture
def sandbox(verifier_session: Session) -> Sandbox:
    return verifier_session.sandbox


@pytest.fixture
def timed(sandbox: Sandbox) -> Iterator[Time]:
    loaded: list[Candidate] = []

    def load(source: bytes) -> TimedCandidate:
        loaded.append(sandbox.load(source=source, entry="run"))
        subject = TimedCandidate(loaded[-1])
        subject.arm([X], Setup(slots=2))
        return subject

    yield load
    for candidate in loaded:
        candidate.close()


@pytest.mark.parametrize("dense", [False, True])
def test_an_honest_kernel_shows_the_outputs_of_the_call_that_is_asked_for(
    timed: Time, dense: bool
) -> None:
    subject = timed(HONEST)
    run = subject.play(Tape((1, 2, 5), KEY, dense=dense))
    assert torch.equal(subject.reveal(2)[0], 2 * turned(X, 5, 0))
    assert (run.calls, len(run.seconds)) == (3, 3)


def test_what_the_calls_claim_is_part_of_what_the_referee_saw(timed: Time) -> None:
    run = timed(HONEST).play(Tape((1, 2, 5), KEY, flush_bytes=4096))
    assert 0 < sum(run.seconds) < run.wall_s


def test_an_ordinary_call_still_works_between_runs(timed: Time) -> None:
    subject = timed(HONEST)
    subject.play(Tape((1,), KEY))
    assert torch.equal(subject._candidate.call([X]).outputs[0], 2 * X)
    subject.play(Tape((1,), KEY))


def test_outputs_made_up_when_they_are_asked_for_are_caught(timed: Time) -> None:
    subject = timed(LATE)
    subject.play(Tape((1, 2), KEY))
    with pytest.raises(CaughtError, match="not the ones that it had when the run ended"):
        subject.reveal(1)


def test_without_a_device_no_graph_can_be_had(timed: Time) -> None:
    with pytest.raises(NoGraphError, match="no CUDA graphs"):
        timed(HONEST).play(Tape((1,), KEY, in_graph=(1,)))


def test_a_kernel_that_raises_on_the_clock_cannot_be_timed(timed: Time) -> None:
    with pytest.raises(TimingError, match="not now"):
        timed(b"def run(x):\n    raise ValueError('not now')\n")


def test_a_kernel_that_ends_its_process_on_the_clock_cannot_be_timed(timed: Time) -> None:
    with pytest.raises(TimingError, match="status 3"):
        timed(b"import os\ndef run(x):\n    os._exit(3)\n")


class Scripted:
    """A candidate whose answers are written down."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._answers = list(answers)

    def demand(self, body: Any, args: Any = None, *, timeout_s: float) -> Demanded:
        return Demanded(Reply(ReplyKind.RETURNED), self._answers.pop(0), 0.01)


def played(claims: dict[str, Any], commit: str = "") -> None:
    candidate: Any = Scripted({"commit": commit}, claims)
    TimedCandidate(candidate).play(Tape((1, 2), KEY))


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"seconds": [1e-6], "digests": [[1], [2]]}, "1 times for 2 calls"),
        ({"seconds": [1e-6, float("nan")], "digests": [[1], [2]]}, "no times"),
        ({"seconds": [1e-6, -1.0], "digests": [[1], [2]]}, "no times"),
        ({"seconds": ["0.1", 0.1], "digests": [[1], [2]]}, "no times"),
        ({"seconds": [1e-6, 1e-6], "digests": [[1], "2"]}, "no digests"),
        ({"seconds": [1e-6, 1e-6], "digests": [[1], [2, 3]]}, "different numbers"),
        ({"seconds": [1e-6, 1e-6], "digests": [[1], [2]]}, "committed"),
        ({}, "no times"),
    ],
)
def test_a_claim_that_cannot_be_true_is_caught(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(CaughtError, match=why):
        played(claims)
