"""Triton's language in the interpreter does what it did before it was hastened."""

from __future__ import annotations

import pytest
import torch

from tests.verifier.candidate.conftest import Load
from verifier.candidate.client import Candidate
from verifier.subject import Reply, ReplyKind

HEAD = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, o, BLOCK: tl.constexpr):
"""
TAIL = """

def run(x):
    o = torch.zeros(4, 4)
    kernel[(1,)](x, o, BLOCK=4)
    return o
"""


def launched(load: Load, body: str, tail: str = TAIL) -> Reply:
    """One launch of a kernel with this body on 1.0 to 6.0."""
    candidate: Candidate = load((HEAD + body + tail).encode())
    return candidate.call([torch.arange(1.0, 7.0)])


def written(reply: Reply) -> list[list[float]]:
    assert reply.returned, reply.detail
    found: list[list[float]] = reply.outputs[0].tolist()
    return found


def test_a_value_tells_its_shape_and_its_number_of_elements(load: Load) -> None:
    body = """
    v = tl.zeros((BLOCK, 2 * BLOCK), tl.float32)
    tl.store(o, v.shape[0])
    tl.store(o + 1, v.shape[1])
    tl.store(o + 2, v.numel)
    tl.store(o + 3, tl.sum(v).numel)
"""
    assert written(launched(load, body))[0] == [4, 8, 32, 1]


def test_values_of_other_shapes_are_broadcast(load: Load) -> None:
    body = """
    at = tl.arange(0, BLOCK)
    table = tl.load(x + at)[:, None] * 10 + tl.load(x + at)[None, :]
    tl.store(o + at[:, None] * BLOCK + at[None, :], table)
"""
    expected = [[row * 10 + column for column in range(1, 5)] for row in range(1, 5)]
    assert written(launched(load, body)) == expected


def test_values_of_one_shape_keep_types_of_their_own(load: Load) -> None:
    body = """
    at = tl.arange(0, BLOCK)
    small = tl.full((BLOCK,), 250, tl.uint8)
    tl.store(o + at, small + small)
    tl.store(o + BLOCK + at, small.to(tl.int8, bitcast=True))
    tl.store(o + 2 * BLOCK + at, small.to(tl.int32) + small.to(tl.int32))
"""
    assert [row[0] for row in written(launched(load, body))][:3] == [244, -6, 500]


@pytest.mark.parametrize("shape", ["(BLOCK - 1,)", "(BLOCK / 2,)"])
def test_an_impossible_shape_is_refused_though_its_like_was_met(load: Load, shape: str) -> None:
    body = f"""
    like = tl.zeros((BLOCK // 2,), tl.float32) + 1
    v = tl.zeros({shape}, tl.float32)
    tl.store(o, tl.sum(v) + tl.sum(like))
"""
    reply = launched(load, body)
    assert reply.kind is ReplyKind.RAISED
    assert "Shape element 0 must" in reply.detail


def test_values_of_shapes_that_do_not_fit_are_refused(load: Load) -> None:
    body = """
    tl.store(o, tl.sum(tl.arange(0, BLOCK) + tl.arange(0, 2 * BLOCK)))
"""
    assert "incompatible dimensions" in launched(load, body).detail


@pytest.mark.parametrize("given", ["o[1:]", "torch.nn.Parameter(o[1:])"])
def test_what_a_launch_writes_is_in_the_tensor_that_it_was_handed(load: Load, given: str) -> None:
    body = """
    tl.store(o + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))
"""
    tail = TAIL.replace("(x, o, ", f"(x[2:], {given}, ")
    assert written(launched(load, body, tail))[:2] == [[0, 0, 0, 0], [3, 4, 5, 6]]


def test_tensors_in_a_tuple_are_written_to(load: Load) -> None:
    body = """
    tl.store(o[1] + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)) + o[0])
"""
    tail = TAIL.replace("(x, o, ", "(x, (5, o[1]), ")
    assert written(launched(load, body, tail))[1] == [6, 7, 8, 9]
