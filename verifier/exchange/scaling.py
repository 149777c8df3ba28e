"""A problem at smaller sizes: the same code, some of its top-level integers replaced.

KernelBench's sizes fill a GPU; float64 on a CPU, or Triton's interpreter, needs smaller ones.
Replaced are whole numbers that the module assigns at its top level, alone or in a tuple.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

LEAST: Final = 9
"""Smaller integers are more often a kernel size, a stride or an axis than a size."""
FLOOR: Final = 2
MAX_ROUNDS: Final = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """What a problem needs at some sizes, each as a share of what is allowed."""

    elements: float
    flops: float

    @property
    def worst(self) -> float:
        return max(self.elements, self.flops)

    @property
    def sum(self) -> float:
        """Falls with every step in the right direction, also where the worst stays as it is."""
        return math.log1p(self.elements) + math.log1p(self.flops)


@dataclass(frozen=True, slots=True)
class Constant:
    """One integer at the top level: its name, its place in a tuple (-1: it stands alone)."""

    name: str
    place: int
    value: int


Sizes = Mapping[Constant, int]


def constants(tree: ast.Module) -> list[Constant]:
    """Every integer that may be a size, the greatest first."""
    found = [
        Constant(name, place, number)
        for name, value in _assignments(tree)
        for place, part in _parts(value)
        if (number := _folded(part)) is not None and number >= LEAST
    ]
    return sorted(found, key=lambda constant: -constant.value)


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _parts(value: ast.expr) -> Iterator[tuple[int, ast.expr]]:
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            yield from enumerate(items)
        case _:
            yield -1, value


def _folded(value: ast.expr) -> int | None:
    """The integer that an expression of constants is: ``2048 * 2``, ``1 << 12``."""
    match value:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            one, two = _folded(left), _folded(right)
            if one is None or two is None or not 0 <= two <= 1 << 31:
                return None
            match op:
                case ast.Mult():
                    return one * two
                case ast.Add():
                    return one + two
                case ast.Sub():
                    return one - two
                case ast.LShift() if two < 32:
                    return one << two
                case ast.Pow() if two < 32 and abs(one) < 1 << 16:
                    return int(one**two)
                case _:
                    return None
        case _:
            return None


def replaced(tree: ast.Module, sizes: Sizes) -> ast.Module:
    """A copy of the module with other sizes; all else stays as it is."""
    new = copy.deepcopy(tree)
    wanted = {(constant.name, constant.place): size for constant, size in sizes.items()}
    for node in new.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                _replace_in(node, name, wanted)
            case _:
                pass
    return ast.fix_missing_locations(new)


def _replace_in(
    node: ast.Assign | ast.AnnAssign, name: str, wanted: Mapping[tuple[str, int], int]
) -> None:
    if (name, -1) in wanted:
        node.value = ast.Constant(wanted[name, -1])
    elif isinstance(node.value, ast.Tuple | ast.List):
        items = node.value.elts
        node.value.elts = [
            ast.Constant(wanted[name, place]) if (name, place) in wanted else item
            for place, item in enumerate(items)
        ]


def scale(tree: ast.Module, cost: Callable[[ast.Module], Cost | None]) -> dict[Constant, int]:
    """New sizes under which ``cost`` is at most 1, or as small as halving gets it.

    ``cost`` says None for sizes that the problem itself refuses. The greatest integers are halved
    first, so that ratios and powers of two stay; those of equal value also together, because they
    may have to agree.
    """
    found = constants(tree)
    sizes = {constant: constant.value for constant in found}
    now = cost(tree)
    for _ in range(MAX_ROUNDS):
        if now is None or now.worst <= 1:
            break
        step = _step(tree, sizes, now, cost)
        if step is None:
            break
        sizes, now = step
    return {constant: size for constant, size in sizes.items() if size != constant.value}


def _step(
    tree: ast.Module,
    sizes: dict[Constant, int],
    now: Cost,
    cost: Callable[[ast.Module], Cost | None],
) -> tuple[dict[Constant, int], Cost] | None:
    for group in _groups(sizes):
        trial = {**sizes, **{constant: max(sizes[constant] // 2, FLOOR) for constant in group}}
        then = cost(replaced(tree, trial))
        if then is not None and then.sum < now.sum and then.worst <= now.worst:
            return trial, then
    return None


def _groups(sizes: Mapping[Constant, int]) -> Iterator[list[Constant]]:
    """What to halve next: each constant, the greatest first, then those of one value together."""
    halvable = sorted((c for c in sizes if sizes[c] >= LEAST), key=lambda c: -sizes[c])
    yield from ([constant] for constant in halvable)
    for size in dict.fromkeys(sizes[constant] for constant in halvable):
        together = [constant for constant in halvable if sizes[constant] == size]
        if len(together) > 1:
            yield together
