"""Looking at timed outputs: which call, is chosen when the run is over."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import torch

from verifier.candidate.stopwatch import Tape, turned
from verifier.candidate.timed import CaughtError
from verifier.measure.subjects import Timed
from verifier.records import CaseRecord
from verifier.referee.bench import Bench
from verifier.subject import Arg

MOST: Final = 40
DEAR_ELEMENTS: Final = 1 << 22
"""Beyond this many elements a comparison costs so much that only every fourth run is looked at."""


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
        self.count = 0

    def look(self, subject: Timed, tape: Tape) -> None:
        """Raises CaughtError when the call that is chosen now has a wrong output."""
        if self.count >= MOST or (self._dear and self.count and self._choose(4)):
            return
        self.count += 1
        call = self._choose(tape.calls)
        args = self.args_of(tape.shift(call))
        objection = self.objection(args, subject.reveal(call))
        if objection:
            raise CaughtError(
                f"the output of timed call {call} of {tape.calls} is wrong: {objection}"
            )

    def args_of(self, shift: int) -> list[Arg]:
        """What a call with this secret got."""
        return [
            turned(arg, shift, place)
            if isinstance(arg, torch.Tensor) and place not in self._fixed
            else arg
            for place, arg in enumerate(self._args)
        ]

    def objection(self, args: Sequence[Arg], outputs: Sequence[torch.Tensor]) -> str:
        """What is wrong with the outputs for these arguments; '' when nothing is."""
        contract = self._bench.contract
        fitting = self._fit(outputs)
        if fitting is None:
            return f"{len(outputs)} tensors for the contract's {len(contract.outputs)} outputs"
        for output, tensor in zip(contract.outputs, fitting, strict=True):
            if tuple(tensor.shape) != contract.shape(output, self._case.dims):
                return f"{output.name} has shape {list(tensor.shape)}"
            if str(tensor.dtype) != f"torch.{contract.dtype(output, self._case.dtypes)}":
                return f"{output.name} is {tensor.dtype}"
        # Nothing of this is asked for twice, and the tensors may be big: nothing is remembered.
        bench = replace(self._bench, _golden=OrderedDict(), _eager=OrderedDict())
        finding = bench.compare(self._case, args, tuple(fitting))
        return finding.detail if finding.failed else ""

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
