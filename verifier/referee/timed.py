"""Calls as a timing makes them, as a case that can be judged again without a clock.

All of them begin from one draw of inputs. Each gets these turned by a secret number of elements
(docs/timing.md), every time at addresses that no call before has used.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.candidate.stopwatch import turned
from verifier.contract import DomainKind
from verifier.gate import Finding, not_applicable
from verifier.records import CaseRecord
from verifier.referee.bench import Bench
from verifier.subject import Arg, CallOptions, Placement, Reply, Subject

SHIFTS: Final = "shifts"
MAX_SHIFTS: Final = 64
"""So many calls lead up to the one that is looked at; a run of the clock may have made more."""
STAGED: Final = CallOptions(placement=Placement.FRESH)


def fixed_places(bench: Bench) -> tuple[int, ...]:
    """Arguments that must not be turned: ascending offsets."""
    offsets = (i.name for i in bench.contract.inputs if i.domain.kind is DomainKind.OFFSETS)
    return tuple(map(bench.position, offsets))


def turned_args(args: Sequence[Arg], shift: int, fixed: Container[int]) -> list[Arg]:
    """What a call with this secret gets."""
    return [
        turned(arg, shift, place) if isinstance(arg, torch.Tensor) and place not in fixed else arg
        for place, arg in enumerate(args)
    ]


def timed_case(case: CaseRecord, shifts: Sequence[int]) -> CaseRecord:
    """The calls with these secrets; it is the last of them that is judged."""
    params = {"check": timed.__name__, SHIFTS: list(shifts)[-MAX_SHIFTS:]}
    return replace(case, params=params)


def _calls(bench: Bench, case: CaseRecord) -> Iterator[list[Arg]]:
    args, fixed = bench.args(case), fixed_places(bench)
    for shift in case.params[SHIFTS]:
        yield turned_args(args, shift, fixed)


def timed(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """After calls like those of a timing it is as right as in gate 1."""
    finding = not_applicable("no call")
    for args in _calls(bench, case):
        finding = judged(bench, case, args, subject.call(args, STAGED))
    return finding


def judged(bench: Bench, case: CaseRecord, args: Sequence[Arg], reply: Reply) -> Finding:
    """One timed call by the rule of gate 1; what does not return has no time either."""
    if not reply.returned:
        return not_applicable(f"it does not return when timed: {reply.detail}")
    outputs = bench.results(case, args, reply)
    finding = outputs if isinstance(outputs, Finding) else bench.compare(case, args, outputs)
    return accused(finding) if finding.failed else finding


def accused(finding: Finding) -> Finding:
    """In words that say when it was."""
    return replace(finding, detail=f"wrong output in a timed call: {finding.detail}")
