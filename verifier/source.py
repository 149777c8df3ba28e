"""What can be read off a kernel's source without running it.

The source is hostile text: it is parsed, never imported, and nothing here is a verdict. What it
says decides which device can judge the kernel and where gate 4 looks.
"""

from __future__ import annotations

import ast
import hashlib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from verifier.conventions.choose import is_cuda_file, solution_text
from verifier.conventions.header import integer_constants
from verifier.records import Language

MAX_SOURCE_NBYTES: Final = 1 << 20
"""Greatest size of a kernel's source."""

_TILE_NAME: Final = re.compile(r"block|tile|chunk|^b[mnk]?$", re.IGNORECASE)
_CUDA_TILE_NAME: Final = re.compile(r"block|tile|chunk|thread|^b[mnk]?$", re.IGNORECASE)
_CUDA_WORD: Final = re.compile(r"\b__global__\b")
_CUDA_MAKERS: Final = frozenset({"load_inline", "RawKernel", "RawModule", "SourceModule"})
"""Functions of torch, CuPy and PyCUDA that make kernels of a text."""
_POSITIONAL: Final = "block"
_LEAST_POSITIONAL: Final = 16
"""What a number without a name among the arguments of a launch is taken for, from where on."""
_MAX_CONSTANTS: Final = 4
_MAX_AST_NBYTES: Final = MAX_SOURCE_NBYTES
_MAX_TILE: Final = 1 << 16
_MAX_OPERAND: Final = 1 << 20
_MAX_EXPONENT: Final = 20
_MAX_DEPTH: Final = 8
_POWERS: Final = (ast.LShift, ast.Pow)
_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about one source: its identity, language, and integers that look like tile sizes.

    ``problem`` says why the source cannot even be tried (too large), '' otherwise; a syntax error
    is no problem here, it is for the verdict to say.
    """

    sha256: str
    text: str
    language: Language
    tile_sizes: tuple[int, ...] = ()
    problem: str = ""


def _imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def _language(text: str, tree: ast.AST | None) -> Language:
    """By what it imports, and what it calls: words in comments and texts count for nothing."""
    if tree is not None and _builds_cuda(tree):
        return Language.CUDA
    modules = (
        _imports(tree) if tree else set(re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.M))
    )
    if "triton" in modules:
        return Language.TRITON
    if "numpy" in modules:
        return Language.NUMPY
    return Language.TORCH


def _builds_cuda(tree: ast.AST) -> bool:
    """Whether it calls what makes kernels of CUDA C++, or hands such a text to a call."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(_called(call) in _CUDA_MAKERS for call in calls):
        return True
    named = _cuda_texts(tree)
    return any(_is_cuda_text(arg, named) for call in calls for arg in _handed(call))


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called; '' where it has none."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _handed(call: ast.Call) -> Iterator[ast.AST]:
    """All parts of the arguments of a call."""
    for arg in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from ast.walk(arg)


def _cuda_texts(tree: ast.AST) -> set[str]:
    """Names that such a text was given."""
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        if any(_is_cuda_text(part, set()) for part in ast.walk(node.value))
        for name in _targets(node)
    }


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_cuda_text(node: ast.AST, named: set[str]) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(_CUDA_WORD.search(text))
        case ast.Name(id=name):
            return name in named
        case _:
            return False


def _named_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name, expression) of all that gives a name a value: keywords, defaults, assignments."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name), value=value):
                yield name, value
            case ast.Call(func=ast.Subscript(), args=args):  # kernel[grid](x, y, 1024)
                yield from ((_POSITIONAL, arg) for arg in args if _is_sizable(arg))
            case ast.Assign(targets=targets, value=value):
                yield from ((name.id, value) for name in targets if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.FunctionDef(args=ast.arguments() as args):
                named = [*args.posonlyargs, *args.args]
                for arg, default in zip(reversed(named), reversed(args.defaults), strict=False):
                    yield arg.arg, default
                for arg, given in zip(args.kwonlyargs, args.kw_defaults, strict=True):
                    if given is not None:
                        yield arg.arg, given
            case ast.Dict(keys=keys, values=values):
                for key, item in zip(keys, values, strict=True):
                    match key:
                        case ast.Constant(value=str(name)):
                            yield name, item
                        case _:
                            pass
            case _:
                pass


def _is_sizable(value: ast.expr) -> bool:
    """A plain number that is more likely a size than a flag or a dim."""
    match value:
        case ast.Constant(value=int(number)):
            return number >= _LEAST_POSITIONAL
        case _:
            return False


def _folded(value: ast.expr, depth: int = _MAX_DEPTH) -> int | None:
    """The integer that an expression of constants is, such as ``1 << 12``; None for all else.

    Nothing is computed with numbers that are no tile size, so hostile powers cost nothing.
    """
    match value:
        case ast.Constant(value=int(number)):
            return number if 0 <= number <= _MAX_OPERAND else None
        case ast.BinOp(left=left, op=op, right=right) if depth:
            apply = _ARITHMETIC.get(type(op))
            one, two = _folded(left, depth - 1), _folded(right, depth - 1)
            if apply is None or one is None or two is None:
                return None
            if isinstance(op, _POWERS) and two > _MAX_EXPONENT:
                return None
            if isinstance(op, ast.FloorDiv) and two == 0:
                return None
            number = apply(one, two)
            return number if 0 <= number <= _MAX_OPERAND else None
        case _:
            return None


def _integers(value: ast.expr, depth: int = _MAX_DEPTH) -> Iterator[int]:
    """The constants that a value is made of: 64 and 4096 in ``max(64, min(width, 1 << 12))``."""
    number = _folded(value)
    if number is not None:
        yield number
    elif depth:
        match value:
            case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, _POWERS):
                parts = [left, right]
            case ast.Call(args=args):
                parts = args
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case _:
                parts = []
        for part in parts:
            yield from _integers(part, depth - 1)


def _tile_sizes(tree: ast.AST | None) -> tuple[int, ...]:
    if tree is None:
        return ()
    sizes = sorted(
        {
            size
            for name, value in _named_values(tree)
            if _TILE_NAME.search(name)
            for size in _integers(value)
            if 1 < size <= _MAX_TILE
        }
    )
    return _few(sizes)


def _few(sizes: list[int]) -> tuple[int, ...]:
    if len(sizes) > _MAX_CONSTANTS:  # both ends: a few small ones must not hide the greatest
        sizes = sizes[: _MAX_CONSTANTS // 2] + sizes[-(_MAX_CONSTANTS // 2) :]
    return tuple(sizes)


def _parse(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_source(source: bytes) -> SourceFacts:
    """The facts of one source. Never raises for anything that the bytes could be."""
    sha256 = hashlib.sha256(source).hexdigest()
    if len(source) > MAX_SOURCE_NBYTES:
        problem = f"the source is {len(source):,} bytes; the limit is {MAX_SOURCE_NBYTES:,}"
        return SourceFacts(sha256, "", Language.TORCH, problem=problem)
    text = source.decode("utf-8", errors="backslashreplace")
    code = solution_text(text) or text
    tree = _parse(code)
    if tree is None and is_cuda_file(code):
        return SourceFacts(sha256, text, Language.CUDA, _cuda_tile_sizes(code))
    return SourceFacts(sha256, text, _language(code, tree), _tile_sizes(tree))


def _cuda_tile_sizes(code: str) -> tuple[int, ...]:
    """Of a .cu file: the constants whose names say so, and blocks of threads are tiles too."""
    named = integer_constants(code).items()
    sizes = {size for name, size in named if _CUDA_TILE_NAME.search(name) and 1 < size <= _MAX_TILE}
    return _few(sorted(sizes))
