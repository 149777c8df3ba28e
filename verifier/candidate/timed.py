"""The referee's side of timing one candidate: send, look at the own clock, check what comes back.

Whatever the host says is a claim: times are numbers or they are not taken, digests must be the ones
that it had committed itself to before it knew which call would be looked at, and the bytes of the
call that is looked at must have that digest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from verifier.candidate.client import Candidate, Demanded
from verifier.candidate.stopwatch import Setup, Tape, commit_of, digest_of
from verifier.subject import Arg

_PLAY_S: Final = 120.0


class TimingError(Exception):
    """This subject cannot be timed; the message says why. Nothing is proven against it."""


class NoGraphError(TimingError):
    """Its calls cannot be captured in a CUDA graph."""


class CaughtError(Exception):
    """It claims what is not true; the message says what gave it away."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the loop: its length by the referee's clock, and what each call claims."""

    calls: int
    wall_s: float
    seconds: tuple[float, ...]
    digests: tuple[tuple[int, ...], ...]


class TimedCandidate:
    """One candidate on the clock."""

    name = "kernel"

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._tape = Tape((), (1, 0))
        self._run = Run(0, 0.0, (), ())

    def arm(self, args: Sequence[Arg], setup: Setup) -> None:
        """Hand it the arguments that all calls begin from. Raises TimingError."""
        _ended(self._ask({"op": "arm", "setup": setup.to_json()}, args))

    def play(self, tape: Tape) -> Run:
        """One run. Raises TimingError, NoGraphError or CaughtError."""
        played = _ended(self._ask({"op": "play", "tape": tape.to_json()}))
        claims = _ended(self._ask({"op": "claims"})).answer
        run = Run(tape.calls, played.wall_s, _seconds(claims), _digests(claims))
        if len(run.seconds) != tape.calls or len(run.digests) != tape.calls:
            raise CaughtError(f"it claims {len(run.seconds)} times for {tape.calls} calls")
        if commit_of(run.digests) != played.answer.get("commit"):
            raise CaughtError("its digests are not the ones that it had committed itself to")
        self._tape, self._run = tape, run
        return run

    def reveal(self, call: int) -> tuple[torch.Tensor, ...]:
        """What it kept of one call of the last run, the contents proven by their digests."""
        answer = _ended(self._ask({"op": "reveal", "call": call})).answer
        try:
            outputs = tuple(map(self._candidate.output, answer["outputs"]))
        except (KeyError, ValueError, TypeError) as error:
            raise CaughtError(f"what it shows of a timed call is no tensor: {error}") from error
        shown = [digest_of(output, self._tape.key) for output in outputs]
        if shown != [value % (1 << 64) for value in self._run.digests[call]]:
            raise CaughtError(
                f"the outputs of timed call {call} are not the ones that it had when the run ended"
            )
        return outputs

    def _ask(self, body: Mapping[str, Any], args: Sequence[Arg] | None = None) -> Demanded:
        return self._candidate.demand(body, args, timeout_s=_PLAY_S)


def _ended(demanded: Demanded) -> Demanded:
    reply = demanded.reply
    if reply.returned:
        return demanded
    kind = NoGraphError if demanded.answer.get("no_graph") is True else TimingError
    raise kind(reply.detail or reply.kind)


def _seconds(claims: Mapping[str, Any]) -> tuple[float, ...]:
    values = claims.get("seconds")
    if not isinstance(values, list) or not all(map(_is_time, values)):
        raise CaughtError("its times are no times")
    return tuple(float(value) for value in values)


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _digests(claims: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    rows = claims.get("digests")
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise CaughtError("its digests are no digests")
    if len({len(row) for row in rows}) > 1:
        raise CaughtError("its calls have different numbers of outputs")
    return tuple(map(tuple, rows))


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and all(type(v) is int and abs(v) < 1 << 64 for v in row)
