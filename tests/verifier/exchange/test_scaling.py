"""A problem at smaller sizes keeps its code, and gets no smaller than it must."""

from __future__ import annotations

import ast
from typing import Final

from verifier.exchange.scaling import Constant, Cost, constants, replaced, scale

SOURCE: Final = """
N = 2048 * 2
shape = (64, 3, 224)
kernel_size = 3
flag = True
name = "x"
M: int = 1 << 10
def f():
    return 4096
"""


def test_only_integers_at_the_top_that_may_be_sizes_are_candidates() -> None:
    found = [(c.name, c.place, c.value) for c in constants(ast.parse(SOURCE))]
    assert found == [("N", -1, 4096), ("M", -1, 1024), ("shape", 2, 224), ("shape", 0, 64)]


def test_nothing_but_the_named_integers_changes() -> None:
    new = replaced(ast.parse(SOURCE), {Constant("N", -1, 4096): 8, Constant("shape", 2, 224): 9})
    text = ast.unparse(new)
    assert "N = 8" in text
    assert "shape = (64, 3, 9)" in text
    assert "return 4096" in text


def sizes(tree: ast.Module) -> dict[str, int]:
    space: dict[str, int] = {}
    exec(compile(tree, "t", "exec"), space)  # noqa: S102
    return space


def test_the_greatest_is_halved_until_the_budget_is_met() -> None:
    tree = ast.parse("A = 1024\nB = 64\n")
    new = scale(tree, lambda t: Cost(sizes(t)["A"] * sizes(t)["B"] / 4096, 0))
    assert {c.name: size for c, size in new.items()} == {"A": 64}


def test_sizes_that_must_agree_are_halved_together() -> None:
    def cost(tree: ast.Module) -> Cost | None:
        space = sizes(tree)
        return Cost(space["A"] / 16, 0) if space["A"] == space["B"] else None

    new = scale(ast.parse("A = 64\nB = 64\n"), cost)
    assert {c.name: size for c, size in new.items()} == {"A": 16, "B": 16}


def test_a_problem_that_fits_is_left_alone() -> None:
    assert scale(ast.parse("A = 64\n"), lambda tree: Cost(1, 1)) == {}


def test_a_problem_that_refuses_every_other_size_is_left_alone() -> None:
    tree = ast.parse("A = 64\n")
    assert scale(tree, lambda t: Cost(9, 9) if sizes(t)["A"] == 64 else None) == {}
