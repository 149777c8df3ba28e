"""What can be read off a kernel's source without running it.

The source is hostile text: it is parsed, never imported, and nothing here is a verdict. What it
says decides which device can judge the kernel and where gate 4 looks.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from verifier.records import Language

MAX_SOURCE_NBYTES: Final = 1 << 20
"""Greatest size of a kernel's source."""

_TILE_NAME: Final = re.compile(r"block|tile|chunk|^b[mnk]?$", re.IGNORECASE)
_MAX_CONSTANTS: Final = 4
_MAX_AST_NBYTES: Final = MAX_SOURCE_NBYTES


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
    if re.search(r"\bload_inline\b|\bRawKernel\b|\b__global__\b", text):
        return Language.CUDA
    modules = (
        _imports(tree) if tree else set(re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.M))
    )
    if "triton" in modules:
        return Language.TRITON
    if "numpy" in modules:
        return Language.NUMPY
    return Language.TORCH


def _named_integers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, value) of every keyword, default and assignment that gives an integer to a name."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name), value=ast.Constant(value=int(value))):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                yield name, value
            case ast.FunctionDef(args=ast.arguments() as args):
                named = args.args[len(args.args) - len(args.defaults) :]
                for arg, default in zip(named, args.defaults, strict=True):
                    if isinstance(default, ast.Constant) and isinstance(default.value, int):
                        yield arg.arg, default.value
            case ast.Dict(keys=keys, values=values):
                for key, item in zip(keys, values, strict=True):
                    match key, item:
                        case ast.Constant(value=str(name)), ast.Constant(value=int(value)):
                            yield name, value
                        case _:
                            pass
            case _:
                pass


def _tile_sizes(tree: ast.AST | None) -> tuple[int, ...]:
    if tree is None:
        return ()
    sizes = {
        value
        for name, value in _named_integers(tree)
        if _TILE_NAME.search(name) and 1 < value <= 8192
    }
    return tuple(sorted(sizes)[:_MAX_CONSTANTS])


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
    tree = _parse(text)
    return SourceFacts(sha256, text, _language(text, tree), _tile_sizes(tree))
