"""Two calls that differ in one element, laid side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
import torch

from verifier.referee.provenance import Element, Known, UncomparableError, foreign_values
from verifier.subject import Reply, ReplyKind, Watched

OLD, NEW = 0.3, -1.7
ELEMENT = Element(torch.tensor(OLD), torch.tensor(NEW))
Launches = Sequence[Watched]


def launch(
    before: Sequence[torch.Tensor] = (),
    after: Sequence[torch.Tensor] | None = None,
    numbers: Sequence[float] = (),
) -> Watched:
    return Watched(tuple(before), tuple(before if after is None else after), tuple(numbers), 0)


def reply(launches: Launches, output: torch.Tensor | None = None) -> Reply:
    outputs = (torch.zeros(1) if output is None else output,)
    final = Watched(outputs, (), (), 0)
    return Reply(ReplyKind.RETURNED, outputs=outputs, watched=tuple(launches), final=final)


def found(one: Reply, two: Reply) -> str | None:
    return foreign_values(one, two, ELEMENT, Known())


def handed(one: torch.Tensor, two: torch.Tensor) -> str | None:
    return found(reply([launch([one])]), reply([launch([two])]))


def data(value: float) -> torch.Tensor:
    return torch.tensor([1.0, value, 2.0, value])


CARRIED: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "itself": lambda x: x,
    "moved and repeated": lambda x: x.flip(0).repeat(3),
    "half": lambda x: x.half(),
    "half and back": lambda x: x.half().float(),
    "bfloat16, as words": lambda x: x.bfloat16().view(torch.int16),
    "as words": lambda x: x.view(torch.int32),
    "as bytes": lambda x: x.view(torch.uint8),
    "in a wide word": lambda x: x.view(torch.int64),
    "complex": lambda x: torch.complex(x, torch.zeros_like(x)),
}


@pytest.mark.parametrize("how", CARRIED)
def test_data_that_were_only_carried_about_are_no_computation(how: str) -> None:
    assert handed(CARRIED[how](data(OLD)), CARRIED[how](data(NEW))) is None


COMPUTED: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: x.softmax(0),
    "scaled": lambda x: x * 2,
    "negated": lambda x: -x,
    "as words": lambda x: x.exp().view(torch.int32),
    "as bytes": lambda x: x.exp().view(torch.uint8),
    "in a table of integers": lambda x: (x * 1000).long(),
    "as a mask": lambda x: x > 0,
}


@pytest.mark.parametrize("how", COMPUTED)
def test_what_was_computed_before_the_first_launch_is_foreign(how: str) -> None:
    text = handed(COMPUTED[how](data(OLD)), COMPUTED[how](data(NEW)))
    assert text == "launch 1 is handed values that no launch computed"


def test_what_an_earlier_launch_left_may_be_carried_on_in_another_dtype() -> None:
    def call(value: float) -> Reply:
        partial = data(value).exp()
        return reply([launch([data(value)], [partial]), launch([partial.half()[1:]])])

    assert found(call(OLD), call(NEW)) is None


def test_work_between_two_launches_is_foreign() -> None:
    def call(value: float) -> Reply:
        partial = data(value).exp()
        return reply([launch([data(value)], [partial]), launch([partial + 1])])

    assert found(call(OLD), call(NEW)) == "launch 2 is handed values that no launch computed"


def test_a_launch_that_leaves_every_number_explains_none() -> None:
    def call(value: float) -> Reply:
        table = torch.arange(256, dtype=torch.uint8)
        answer = data(value).exp().view(torch.uint8)
        return reply([launch([torch.zeros(256)], [table]), launch([answer])])

    assert found(call(OLD), call(NEW)) == "launch 2 is handed values that no launch computed"


def test_the_answer_must_be_what_a_launch_left() -> None:
    def call(value: float, answer: torch.Tensor) -> Reply:
        return reply([launch([data(value)], [data(value).exp()])], answer)

    right = found(call(OLD, data(OLD).exp()), call(NEW, data(NEW).exp()))
    wrong = found(call(OLD, data(OLD).tanh()), call(NEW, data(NEW).tanh()))
    assert right is None
    assert wrong == "an output holds values that no launch left behind"


def test_a_number_may_be_read_from_the_input_and_not_made_of_it() -> None:
    def call(number: float) -> Reply:
        return reply([launch(numbers=[64, number])])

    assert found(call(ELEMENT.old.item()), call(ELEMENT.new.item())) is None
    assert found(call(OLD * 2), call(NEW * 2)) == (
        "what launch 1 is depends on the data, in a number, a grid or a name"
    )


@pytest.mark.parametrize(("old", "new"), [(2**62 + 1, 2**62 + 2), (2**70, 2**70 + 1)])
def test_great_integers_are_told_apart(old: int, new: int) -> None:
    one, two = reply([launch(numbers=[old])]), reply([launch(numbers=[new])])
    assert found(one, two) is not None
    assert found(one, one) is None


def test_offsets_are_explained_by_the_sum_that_made_them_of_what_a_kernel_counted() -> None:
    def call(count: int, *between: Watched) -> Reply:
        counts = torch.tensor([count, 2])
        made = Watched((), (counts,), (), 0, places=(64,))
        return reply([made, *between, placed(counts.cumsum(0), counts.cumsum(0), 96)])

    def summed(count: int) -> Watched:
        counts = torch.tensor([count, 2])
        return Watched((counts,), (counts, counts.cumsum(0)), (), 0, places=(64, 96))

    assert found(call(5), call(6)) is not None
    assert found(call(5, summed(5)), call(6, summed(6))) is None


SMALL: Mapping[str, Callable[[float], torch.Tensor]] = {
    "a boolean": lambda x: torch.tensor([x > 0, True]),
    "bits": lambda x: torch.tensor([x > 0, x < 0]).to(torch.uint8),
    "small integers": lambda x: torch.tensor([int(100 * x), 7]),
    "round numbers": lambda x: torch.tensor([1.0 if x > 0 else 2.0, 3.0]),
}


@pytest.mark.parametrize("how", SMALL)
def test_small_values_are_told_by_their_place_alone(how: str) -> None:
    def call(value: float, place: int, *between: Watched) -> Reply:
        small = SMALL[how](value)
        first = placed(torch.zeros_like(small), small, 64)
        return reply([first, *between, placed(small, small, place)])

    def carried(value: float) -> Watched:
        small = SMALL[how](value)
        blank = torch.zeros_like(small)
        return Watched((blank, small), (small, small), (), 0, places=(128, 64), carries=True)

    assert found(call(OLD, 64), call(NEW, 64)) is None
    assert found(call(OLD, 128), call(NEW, 128)) is not None
    assert found(call(OLD, 128, carried(OLD)), call(NEW, 128, carried(NEW))) is None


def test_what_a_copy_was_handed_without_a_reason_it_does_not_leave_with_one() -> None:
    def call(value: float) -> Reply:
        made = torch.tensor([value > 0])
        copied = Watched((made,), (made, made), (), 0, places=(64, 128), carries=True)
        return reply([copied, placed(made, made, 128)])

    text = found(call(OLD), call(NEW))
    assert text == "launch 1 is handed values that no launch computed"


def test_a_choice_among_memory_that_launches_left_is_foreign() -> None:
    zero, one = torch.zeros(4, dtype=torch.uint8), torch.ones(4, dtype=torch.uint8)
    first = Watched((), (zero, one), (), 0, places=(64, 128))

    def call(chosen: int) -> Reply:
        given = (zero, one)[chosen]
        return reply([first, placed(given, given, (64, 128)[chosen])])

    assert found(call(0), call(0)) is None
    assert found(call(0), call(1)) == "launch 2 is handed values that no launch computed"


def test_what_came_unseen_is_no_more_often_there_than_it_was_left() -> None:
    def call(value: float, times: int) -> Reply:
        left = torch.tensor([value]).exp()
        return reply([launch([data(value)], [left]), launch([left.repeat(times)])])

    assert found(call(OLD, 1), call(NEW, 1)) is None
    assert found(call(OLD, 40), call(NEW, 40)) is not None


def test_small_numbers_that_a_launch_left_leave_the_comparison_open() -> None:
    def call(value: float) -> Reply:
        count = int(100 * value)
        return reply([launch([data(value)], [torch.tensor([count])]), launch(numbers=[count])])

    with pytest.raises(UncomparableError, match="small numbers"):
        found(call(OLD), call(NEW))


def test_what_never_changes_needs_no_explanation() -> None:
    assert handed(torch.full((4,), 7.5), torch.full((4,), 7.5)) is None
    assert handed(torch.full((4,), torch.nan), torch.full((4,), torch.nan)) is None


@pytest.mark.parametrize(
    "other",
    [
        [],
        [launch([torch.zeros(2)])],
        [launch([torch.zeros(3, dtype=torch.half)])],
        [launch([torch.zeros(3)], numbers=[1])],
    ],
)
def test_calls_that_go_different_ways_cannot_be_compared(other: Launches) -> None:
    with pytest.raises(UncomparableError):
        found(reply([launch([torch.zeros(3)])]), reply(other))


def placed(before: torch.Tensor, after: torch.Tensor, place: int) -> Watched:
    return Watched((before,), (after,), (), 0, places=(place,))


def moved_on(one: torch.Tensor, two: torch.Tensor, place: int) -> str | None:
    """A first launch leaves these at place 64; a second one is handed the same at ``place``."""
    blank = torch.zeros_like(one)
    calls = ([placed(blank, left, 64), placed(left, left, place)] for left in (one, two))
    return found(*(reply(launches) for launches in calls))


def test_what_lies_where_a_launch_left_it_needs_no_other_explanation() -> None:
    one = torch.arange(1 << 16).to(torch.int32).view(torch.uint8)
    two = one.flip(0)
    assert moved_on(one, two, 64) is None


def test_a_launch_that_leaves_every_byte_explains_none_elsewhere() -> None:
    pairs = torch.cartesian_prod(torch.arange(256), torch.arange(256)).to(torch.uint8)
    explained = moved_on(pairs[:, 0].contiguous(), pairs[:, 1].contiguous(), 128)
    assert explained is not None
    assert "no launch computed" in explained


def test_what_returns_otherwise_than_a_launch_is_seen_through_or_not_at_all() -> None:
    blind = replace(reply([launch([data(OLD)])]), final=None)
    with pytest.raises(UncomparableError):
        found(blind, blind)
