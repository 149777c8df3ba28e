"""What is known of a launch: its code, the memory that it reaches, whose memory that is."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from verifier.candidate.identity import identity
from verifier.candidate.witness import Anywhere, Reachable, Witness

SOURCE = """
FACTOR = 2

def helper(x):
    return x + 1

def make(inner):
    def kernel(x, block=16):
        return helper(x) * FACTOR + inner + 3
    return kernel

kernel = make(5)
"""


def kernel_of(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - our own text
    return names["kernel"]


def test_the_same_code_has_the_same_identity() -> None:
    assert identity(kernel_of(SOURCE)) == identity(kernel_of(SOURCE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ 3", "+ 4"),
        ("+ 3", "- 3"),
        ("FACTOR = 2", "FACTOR = 2.5"),
        ("make(5)", "make(6)"),
        ("block=16", "block=32"),
        ("return x + 1", "return x + 1.5"),
    ],
)
def test_whatever_it_computes_by_changes_its_identity(old: str, new: str) -> None:
    assert identity(kernel_of(SOURCE)) != identity(kernel_of(SOURCE.replace(old, new)))


def test_a_function_that_calls_itself_has_an_identity() -> None:
    assert identity(kernel_of("def kernel(n):\n    return kernel(n - 1)\n"))


def test_addresses_outside_of_all_memory_are_told() -> None:
    one, two = torch.zeros(4, dtype=torch.int32), torch.zeros(2, dtype=torch.int64)
    start = one.data_ptr()
    inside = np.array([start, start + 15, two.data_ptr() + 8])
    outside = [start - 1, start + 16]
    if two.data_ptr() < start:
        outside = [start + 16]
    reachable = Reachable.of([one, two, one[1:]])
    assert reachable.outside(inside) == []
    assert set(reachable.outside(np.array([*inside, *outside]))) == set(outside)


def test_memory_inside_other_memory_hides_nothing_of_it() -> None:
    whole = torch.zeros(16, dtype=torch.int32)
    reachable = Reachable.of([whole, whole[2:4]])
    assert reachable.outside(np.array([whole.data_ptr() + 60])) == []


def test_a_masked_access_is_none() -> None:
    memory, seen = torch.zeros(4), Witness(exact=True)
    seen.arrive("kernel", [memory], lambda address: None)
    far = np.array([memory.data_ptr(), memory.data_ptr() + 4096], dtype=np.uint64)
    seen.accessed(far, np.array([True, False]))
    assert seen.launches[0].strays == 0
    seen.accessed(far, True)
    assert seen.launches[0].strays == 1


def test_a_tensor_that_was_reached_in_disguise_is_followed_from_there_on() -> None:
    memory, other, seen = torch.zeros(4), torch.ones(4), Witness(exact=True)
    span = other.data_ptr(), other.data_ptr() + 16
    given = seen.arrive("kernel", [memory], lambda at: span if span[0] <= at < span[1] else None)
    seen.accessed(np.array([other.data_ptr(), other.data_ptr() + 4]), True)
    other.fill_(2.0)
    seen.leave(given)
    (launch,) = seen.launches
    assert not seen.full
    assert launch.strays == 0
    assert launch.before[1].view(torch.float32).tolist() == [1.0] * 4
    assert launch.after[1].view(torch.float32).tolist() == [2.0] * 4
    assert launch.places == (memory.data_ptr(), other.data_ptr())


def test_what_only_carries_accuses_nobody() -> None:
    seen = Witness()
    assert seen.carry("copy_", [object()], lambda address: None) is None
    memory = seen.carry("copy_", [torch.zeros(4)], lambda address: None)
    seen.leave(memory)
    assert not seen.full
    assert [launch.carries for launch in seen.launches] == [True]


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "by numpy": lambda: torch.from_numpy(np.ones(3)),
    "by stacking": lambda: torch.stack([torch.ones(2), torch.ones(2)]),
    "as a view": lambda: torch.ones(8)[4:],
}


@pytest.mark.parametrize("how", MADE)
def test_every_tensors_memory_is_found(how: str) -> None:
    tensor = MADE[how]()
    found = Anywhere(gc.get_objects()).find(tensor.data_ptr())
    assert found is not None
    assert found[0] <= tensor.data_ptr() < found[1]


def test_what_is_no_tensors_is_nobodys() -> None:
    array = np.ones(1 << 20)
    assert Anywhere(gc.get_objects()).find(array.ctypes.data + 4096) is None


def test_the_same_contents_are_kept_once() -> None:
    great, seen = torch.zeros(30 << 20, dtype=torch.uint8), Witness()
    for _ in range(8):
        memory = seen.arrive("kernel", [great], lambda address: None)
        seen.leave(memory)
    assert not seen.full
    assert len({id(launch.before[0]) for launch in seen.launches}) == 1
