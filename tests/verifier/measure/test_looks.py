"""Timed outputs are verified: real loops on the CPU, around honest functions and around liars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.gates.inprocess import make_bench
from verifier.candidate.stopwatch import Setup
from verifier.candidate.timed import CaughtError
from verifier.measure.looks import Looks, WrongOutputError
from verifier.measure.subjects import Local
from verifier.measure.trial import Mode, run_pass, tape_of
from verifier.records import CaseRecord
from verifier.referee.bench import Bench
from verifier.referee.generator import Stream
from verifier.subject import Arg

CPU = torch.device("cpu")
CALLS = 8
RUNS = 6
"""Of one pass; of the first of them the last call is looked at, too."""
Function = Callable[..., Any]


class Case:
    """A task at small sizes, and its inputs."""

    def __init__(self, task: str, in_place: tuple[int, ...] = ()) -> None:
        self.bench: Bench = make_bench(task)
        dims, dtypes = self.bench.small_dims(), self.bench.contract.usual_dtypes()
        self.case = CaseRecord("time", dims, dtypes, "normal", 11)
        self.args: list[Arg] = self.bench.args(self.case)
        self.setup = Setup(slots=2, in_place=in_place)
        self.looks = Looks(self.bench, self.case, self.args, self.setup.fixed, _choice())

    def time(self, function: Function, mode: Mode) -> int:
        """Runs it; how many outputs were looked at."""
        subject = Local("kernel", lambda args: _tuple(function(*args)), CPU, allow_tf32=False)
        nothing = Local("nothing", lambda args: (torch.zeros(1),), CPU, allow_tf32=False)
        for one in (subject, nothing):
            one.arm(self.args, self.setup)
        run_pass((subject, nothing), mode, CALLS, lambda tape: self.looks.look(subject, tape))
        return self.looks.count


def _choice() -> Callable[[int], int]:
    stream = Stream(3)
    return lambda count: int(stream.integers(0, count, 1)[0])


def _tuple(value: Any) -> tuple[torch.Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


MODES = pytest.mark.parametrize("mode", [Mode(), Mode(dense=True), Mode(1 << 16)])


@MODES
def test_an_honest_kernel_is_looked_at_after_every_run_and_found_right(mode: Mode) -> None:
    assert Case("relu").time(torch.relu, mode) == RUNS + 1


@MODES
def test_a_kernel_that_returns_what_it_returned_first_is_caught(mode: Mode) -> None:
    first: list[torch.Tensor] = []

    def stale(x: torch.Tensor) -> torch.Tensor:
        first.append(torch.relu(x)) if not first else None
        return first[0].clone()

    with pytest.raises(CaughtError, match="timed call"):
        Case("relu").time(stale, mode)


@MODES
def test_a_kernel_that_remembers_by_address_is_caught(mode: Mode) -> None:
    seen: dict[int, torch.Tensor] = {}

    def by_pointer(x: torch.Tensor) -> torch.Tensor:
        if x.data_ptr() not in seen:
            seen[x.data_ptr()] = torch.relu(x)
        return seen[x.data_ptr()].clone()

    with pytest.raises(CaughtError, match="timed call"):
        Case("relu").time(by_pointer, mode)


@MODES
def test_a_kernel_that_skips_its_work_after_some_calls_is_caught(mode: Mode) -> None:
    done: list[torch.Tensor] = []

    def lazy(x: torch.Tensor) -> torch.Tensor:
        if len(done) < CALLS + 4:
            done.append(torch.relu(x))
        return done[-1].clone()

    with pytest.raises(CaughtError, match="timed call"):
        Case("relu").time(lazy, mode)


def test_a_kernel_that_cheats_in_the_last_call_alone_is_caught() -> None:
    calls: list[int] = []

    def tires(x: torch.Tensor) -> torch.Tensor:
        calls.append(0)
        return torch.relu(x) if len(calls) % (CALLS + 3) else torch.zeros_like(x)

    case = Case("relu")
    case.looks = Looks(case.bench, case.case, case.args, (), lambda count: 0)
    with pytest.raises(WrongOutputError, match="timed call 7 of 8") as caught:
        case.time(tires, Mode())
    assert caught.value.case.params["check"] == "timed"


def test_draws_of_a_random_op_are_not_held_against_one_answer() -> None:
    case = Case("dropout")
    tape = tape_of(Mode(), 1)
    subject = Local("kernel", lambda args: (torch.zeros(1),), CPU, allow_tf32=False)
    case.looks.look(subject, tape)
    assert case.looks.count == 0


def test_a_kernel_that_writes_nothing_is_caught() -> None:
    with pytest.raises(CaughtError, match="timed call"):
        Case("relu").time(lambda x: torch.full_like(x, 7.0), Mode())


def test_a_kernel_that_returns_another_dtype_on_the_clock_is_caught() -> None:
    with pytest.raises(CaughtError, match="float64"):
        Case("relu").time(lambda x: torch.relu(x).double(), Mode())


def test_a_kernel_that_returns_another_shape_on_the_clock_is_caught() -> None:
    with pytest.raises(CaughtError, match="has shape"):
        Case("relu").time(lambda x: torch.relu(x)[None], Mode())


@MODES
def test_an_output_that_lies_in_an_input_is_looked_at_there(mode: Mode) -> None:
    def in_place(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x, inplace=True)

    assert Case("silu_in_place", in_place=(0,)).time(in_place, mode) == RUNS + 1


def test_an_input_that_should_have_changed_and_did_not_is_caught() -> None:
    """It returns nothing of the contract's, so what counts is what it left in its input."""
    case = Case("silu_in_place", in_place=(0,))

    def looked(outputs: Sequence[torch.Tensor]) -> str:
        return case.looks.objection(case.args, outputs)

    assert isinstance(case.args[0], torch.Tensor)
    assert looked([case.args[0]])
    assert not looked([torch.nn.functional.silu(case.args[0])])


def test_a_wrong_number_of_outputs_is_said() -> None:
    case = Case("relu")
    assert case.looks.objection(case.args, []) == "0 tensors for the contract's 1 outputs"
