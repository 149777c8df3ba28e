"""Modules as kernels: made like the reference's, called without gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
import torch

from tests.verifier.conventions.conftest import Load
from verifier.contract import Module, parse_contract
from verifier.conventions.module import construct, from_plain, state_share, to_plain
from verifier.subject import CallOptions, ReplyKind

CONTRACT: Final = parse_contract(
    {
        "slug": "scale",
        "title": "scale",
        "category": "test",
        "convention": "kernelbench",
        "module": {"init": [3], "seed": 7},
        "dims": {},
        "inputs": [{"name": "x", "shape": [2, 3], "dtype": "float32"}],
        "outputs": [{"name": "out", "shape": [2, 3], "dtype": "float32"}],
    }
)
GOOD: Final = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return x * self.weight
"""


class Scale(torch.nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))


def test_the_kernel_has_the_weights_of_the_reference(load: Load) -> None:
    weight = construct(Scale, [3], seed=7).get_parameter("weight")
    reply = load(CONTRACT, GOOD).call([torch.ones(2, 3)])
    assert reply.returned, reply.detail
    assert torch.equal(reply.outputs[0][0], weight)


def test_making_the_module_counts_as_no_side_effect(load: Load) -> None:
    reply = load(CONTRACT, GOOD).call([torch.ones(2, 3)], CallOptions(trace=True))
    assert not [effect for effect in reply.effects if "random" in effect]


def test_outputs_ask_for_no_gradient(load: Load) -> None:
    assert not load(CONTRACT, GOOD).call([torch.ones(2, 3)]).infos[0].requires_grad


def test_another_seed_gives_other_weights(load: Load) -> None:
    other = replace(CONTRACT, module=Module(init=(3,), seed=8))
    outputs = [load(c, GOOD).call([torch.ones(2, 3)]).outputs[0] for c in (CONTRACT, other)]
    assert not torch.equal(*outputs)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("x = 1\n", "no 'ModelNew' in the source"),
        ("def ModelNew(n):\n    return n\n", "no class of torch.nn.Module"),
        ("class ModelNew:\n    pass\n", "no class of torch.nn.Module"),
        (GOOD.replace("self, n", "self, n, m"), "missing 1 required positional argument"),
        ("class ModelNew(:\n", "SyntaxError"),
    ],
)
def test_a_source_without_such_a_module_is_not_loaded(
    load: Load, source: str, complaint: str
) -> None:
    reply = load(CONTRACT, source).call([torch.ones(2, 3)])
    assert reply.kind is ReplyKind.LOAD_FAILED
    assert complaint in reply.detail


def test_a_list_of_tensors_is_taken_for_a_tuple(load: Load) -> None:
    reply = load(CONTRACT, GOOD.replace("x * self.weight", "[x * self.weight]")).call(
        [torch.ones(2, 3)]
    )
    assert reply.returned


@pytest.mark.parametrize("value", [1, 1.5, True, None, "a", [1, (2, [3])], (1, (2, 3))])
def test_plain_arguments_survive_json(value: object) -> None:
    assert from_plain(to_plain(value)) == value


def test_a_tensor_is_no_plain_argument() -> None:
    with pytest.raises(ValueError, match="a Tensor is no plain value"):
        to_plain(torch.ones(1))


def test_making_a_module_leaves_the_generator_alone() -> None:
    before = torch.get_rng_state()
    construct(Scale, [3], seed=1)
    assert torch.equal(before, torch.get_rng_state())


def test_state_is_shared_by_name_and_shape() -> None:
    module = Scale(3)
    taken = state_share(module, {"weight": torch.ones(3), "bias": torch.ones(3)})
    assert taken == ("weight",)
    assert torch.equal(module.weight, torch.ones(3))
    assert state_share(module, {"weight": torch.ones(4)}) == ()


def test_a_contract_of_modules_says_how_they_are_made() -> None:
    with pytest.raises(ValueError, match="needs 'module'"):
        replace(CONTRACT, module=None)
