"""The loop itself, here on the CPU: new inputs in every call, outputs kept and bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from verifier.candidate.stopwatch import (
    GraphError,
    Setup,
    Stopwatch,
    Tape,
    commit_of,
    digest_of,
    turned,
)

CPU = torch.device("cpu")
KEY = (0x9E3779B97F4A7C15, 12345)
X = torch.arange(10.0)
ARGS = [X, 3]


class Recorded:
    """Doubles its input and remembers what it got, and where."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []
        self.places: list[int] = []

    def __call__(self, args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        self.seen.append(args[0].clone())
        self.places.append(args[0].data_ptr())
        return (args[0] * 2,)


def armed(call: Any, args: Sequence[Any] = ARGS, setup: Setup | None = None) -> Stopwatch:
    stopwatch = Stopwatch(CPU, call)
    stopwatch.arm(args, setup or Setup(slots=3))
    return stopwatch


def test_each_call_gets_contents_of_its_own() -> None:
    call = Recorded()
    armed(call).play(Tape((1, 2, 5), KEY))
    expected = [turned(X, shift, 0) for shift in (1, 2, 5)]
    assert torch.equal(torch.stack(call.seen[-3:]), torch.stack(expected))


def test_input_sets_take_turns_at_addresses_of_their_own() -> None:
    call = Recorded()
    armed(call).play(Tape((1, 2, 3, 4), KEY))
    first, second, third, again = call.places[-4:]
    assert len({first, second, third}) == 3
    assert again == first


def test_in_a_dense_run_no_two_calls_share_an_address() -> None:
    call = Recorded()
    armed(call).play(Tape(tuple(range(8)), KEY, dense=True))
    assert len(set(call.places[-8:])) == 8


@pytest.mark.parametrize("dense", [False, True])
def test_the_outputs_of_any_call_can_be_shown(dense: bool) -> None:
    stopwatch = armed(Recorded())
    stopwatch.play(Tape((1, 2, 5), KEY, dense=dense))
    assert torch.equal(stopwatch.reveal(1)[0], 2 * turned(X, 2, 0))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool, torch.int64])
def test_digests_are_those_of_the_outputs_shown(dense: bool, dtype: torch.dtype) -> None:
    stopwatch = armed(lambda args: (args[0].to(dtype),))
    played = stopwatch.play(Tape((1, 2), KEY, dense=dense))
    shown = [digest_of(stopwatch.reveal(call)[0], KEY) for call in (0, 1)]
    assert [row[0] % 2**64 for row in played.digests] == shown


def test_a_later_change_of_the_returned_tensor_does_not_reach_what_was_kept() -> None:
    returned = torch.zeros(4)

    def call(args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        returned.add_(1)
        return (returned,)

    stopwatch = armed(call)
    stopwatch.play(Tape((1, 2), KEY))
    assert stopwatch.reveal(0)[0].tolist() == [4.0] * 4  # three calls to warm up


def test_what_is_changed_in_place_is_kept_behind_what_is_returned() -> None:
    def call(args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        args[0].mul_(2)
        return (args[0].sum(),)

    stopwatch = armed(call, setup=Setup(slots=2, in_place=(0,)))
    stopwatch.play(Tape((4, 6), KEY))
    assert torch.equal(stopwatch.reveal(1)[1], 2 * turned(X, 6, 0))


def test_fixed_arguments_are_never_turned() -> None:
    call = Recorded()
    armed(call, setup=Setup(slots=2, fixed=(0,))).play(Tape((4,), KEY))
    assert torch.equal(call.seen[-1], X)


def test_two_arguments_are_not_turned_alike() -> None:
    values = torch.arange(11)
    assert not torch.equal(turned(values, 3, 0), turned(values, 3, 1))


def test_turns_add_up_as_a_graph_needs_it() -> None:
    values = torch.arange(11)
    assert torch.equal(turned(turned(values, 8, 2), 9, 2), turned(values, 17, 2))


def test_a_tape_survives_the_wire() -> None:
    tape = Tape((1, 2), KEY, 64, (3, 4), dense=True)
    assert Tape.from_json(tape.to_json()) == tape


def test_in_a_graph_the_secrets_of_replay_and_place_add_up() -> None:
    tape = Tape((100, 200), KEY, in_graph=(1, 2, 3))
    assert tape.calls == 6
    assert [tape.shift(call) for call in range(6)] == [101, 102, 103, 201, 202, 203]


def test_without_cuda_there_is_no_graph() -> None:
    with pytest.raises(GraphError, match="no CUDA graphs"):
        armed(Recorded()).play(Tape((1,), KEY, in_graph=(1, 2)))


def test_a_digest_depends_on_the_place_of_each_word() -> None:
    values = torch.arange(8.0)
    assert digest_of(values, KEY) != digest_of(values.flip(0), KEY)


def test_a_commitment_binds_every_digest() -> None:
    assert commit_of([[1], [2]]) != commit_of([[1], [3]])
    assert commit_of([[-1]]) == commit_of([[2**64 - 1]])
