"""Shape expressions of a contract: integers, dim names, + - * // %, min, max, cdiv
(division rounded up) and comparisons.

Parsed with ``ast`` and walked by hand, so that a contract is data and can run nothing.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

Expression: TypeAlias = int | str
"""An integer, or text such as 'N' or '2 * (H + 1)'."""


class ExpressionError(ValueError):
    """The text is no shape expression, or names a dim that nobody declared."""


_BINARY: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[int, int], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _cdiv(size: int, tile: int) -> int:
    return -(-size // tile)


_FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {"min": min, "max": max, "cdiv": _cdiv}
_MAX_LENGTH: Final = 200


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"expression is longer than {_MAX_LENGTH} characters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is no shape expression") from error


def _walk(node: ast.expr, dims: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            if name not in dims:
                raise ExpressionError(f"unknown dim {name!r}")
            return dims[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_walk(left, dims), _walk(right, dims))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, dims)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_walk(arg, dims) for arg in args))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return int(_COMPARE[type(op)](_walk(left, dims), _walk(right, dims)))
        case _:
            pass
    raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in a shape expression")


def evaluate(expression: Expression, dims: Mapping[str, int]) -> int:
    """The expression's value under an assignment of sizes to dims.

    Raises ExpressionError for anything but integer arithmetic over the given dims.
    """
    if isinstance(expression, int):
        return expression
    try:
        return _walk(_parse(expression), dims)
    except (ZeroDivisionError, TypeError) as error:
        raise ExpressionError(f"{expression!r}: {error}") from error


def names(expression: Expression) -> frozenset[str]:
    """The dims that an expression mentions."""
    if isinstance(expression, int):
        return frozenset()
    nodes = ast.walk(_parse(expression))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name)) - frozenset(_FUNCTIONS)
