"""Looking at timed outputs: which call, is chosen when the run is over. The last call of the first
run of each kind is looked at as well."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.candidate.stopwatch import Tape
from verifier.candidate.timed import CaughtError
from verifier.gate import Finding, failed, passed
from verifier.measure.subjects import Timed
from verifier.records import CallDigest, CaseRecord
from verifier.referee.bench import Bench, digest
from verifier.referee.timed import timed_case, turned_args
from verifier.subject import Arg

MOST: Final = 40
DEAR_ELEMENTS: Final = 1 << 22
"""Beyond this many elements a comparison costs so much that only every fourth run is looked at."""


class WrongOutputError(CaughtError):
    """The output of a timed call is wrong: that is no matter of time. ``case`` makes the calls up
    to it again, without the clock; ``call`` says what went in and came out."""

    def __init__(self, case: CaseRecord, finding: Finding, call: CallDigest) -> None:
        super().__init__(finding.detail)
        self.case, self.finding, self.call = case, finding, call


class Looks:
    """Compares one randomly chosen call of a run with the reference."""

    def __init__(
        self,
        bench: Bench,
        case: CaseRecord,
        args: Sequence[Arg],
        fixed: Sequence[int],
        choose: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._bench, self._case, self._args = bench, case, list(args)
        self._fixed, self._choose = set(fixed), choose
        self._dear = bench.elements(case.dims) > DEAR_ELEMENTS
        self._ended: set[tuple[bool, bool, bool]] = set()
        """The kinds of runs of which a last call was looked at."""
        self.count = 0

    def look(self, subject: Timed, tape: Tape) -> None:
        """Raises WrongOutputError when a call that is chosen now has a wrong output."""
        kind = tape.flush_bytes > 0, bool(tape.in_graph), tape.dense
        if kind not in self._ended:
            self._ended.add(kind)
            self._look_at(subject, tape, tape.calls - 1)
        elif self.count >= MOST or (self._dear and self._choose(4)):
            return
        self._look_at(subject, tape, self._choose(tape.calls))

    def _look_at(self, subject: Timed, tape: Tape, call: int) -> None:
        if self._bench.contract.behaviour.random:
            return  # what it draws cannot be held against one right answer
        self.count += 1
        args, outputs = self.args_of(tape.shift(call)), subject.reveal(call)
        finding = self.finding(args, outputs)
        if finding.failed:
            where = f"the output of timed call {call} of {tape.calls} is wrong"
            told = replace(finding, detail=f"{where}: {finding.detail}")
            case = timed_case(self._case, [tape.shift(n) for n in range(call + 1)])
            raise WrongOutputError(case, told, CallDigest(digest(args), digest(outputs)))

    def args_of(self, shift: int) -> list[Arg]:
        """What a call with this secret got."""
        return turned_args(self._args, shift, self._fixed)

    def finding(self, args: Sequence[Arg], outputs: Sequence[torch.Tensor]) -> Finding:
        """Whether these outputs are right for these arguments, by the rule of gate 1."""
        contract = self._bench.contract
        fitting = self._fit(outputs)
        if fitting is None:
            return failed(
                f"{len(outputs)} tensors for the contract's {len(contract.outputs)} outputs"
            )
        for output, tensor in zip(contract.outputs, fitting, strict=True):
            if tuple(tensor.shape) != contract.shape(output, self._case.dims):
                return failed(f"{output.name} has shape {list(tensor.shape)}")
            if str(tensor.dtype) != f"torch.{contract.dtype(output, self._case.dtypes)}":
                return failed(f"{output.name} is {tensor.dtype}")
        # Nothing of this is asked for twice, and the tensors may be big: nothing is remembered.
        bench = replace(self._bench, _golden=OrderedDict(), _eager=OrderedDict())
        finding = bench.compare(self._case, args, tuple(fitting))
        return finding if finding.failed else passed()

    def objection(self, args: Sequence[Arg], outputs: Sequence[torch.Tensor]) -> str:
        """What is wrong with them; '' when nothing is."""
        return self.finding(args, outputs).detail

    def _fit(self, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """The contract's outputs among those returned and those changed in place behind them."""
        expected = self._bench.contract.outputs
        in_place = [out for out in expected if out.in_place_of is not None]
        returned = len(outputs) - len(in_place)
        if returned == len(expected):
            return list(outputs[:returned])
        if returned != len(expected) - len(in_place):
            return None
        plain, changed = iter(outputs[:returned]), iter(outputs[returned:])
        return [next(changed if out.in_place_of is not None else plain) for out in expected]
