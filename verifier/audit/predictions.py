"""Code out of what a model wrote, and kernels that are called as a benchmark's test calls them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from verifier.audit.corpus import Content, CorpusKernel, content_of, parse, sha256_of
from verifier.audit.deriving import Derived

_FENCED: Final = re.compile(r"```[ \t]*(?:python|py|triton)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_TOKENS: Final = ("<|im_end|>", "<|EOT|>", "<|endoftext|>")


def code_of(text: str) -> str:
    """The code in a model's answer: the longest fenced block that is Python, or all of it."""
    for token in _TOKENS:
        text = text.replace(token, "")
    blocks = [block for block in _FENCED.findall(text) if parse(block) is not None]
    return max(blocks, key=len) if blocks else text


def defines(source: str, function: str) -> bool:
    """Whether the source gives that name a value at its top level."""
    tree = parse(source)
    return tree is not None and any(function in _names(node) for node in tree.body)


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name for alias in aliases}
        case ast.If(body=body) | ast.Try(body=body):
            return set().union(*map(_names, body))
        case _:
            return set()


def as_called(kernel: CorpusKernel, derived: Derived) -> CorpusKernel:
    """The kernel with the test's call appended, or with the problem that keeps it from judging."""
    content = content_of(kernel.source)
    kernel = replace(kernel, content=content, sha256=sha256_of(kernel.source))
    if content is Content.NOTHING:
        return refused(kernel, "not Python code")
    if derived.task is None:
        return refused(kernel, f"its task cannot be judged: {derived.problem}")
    if not defines(kernel.source, derived.function):
        return refused(kernel, "does not define the function that its test calls")
    shimmed = kernel.source.rstrip() + derived.shim
    return replace(kernel, source=shimmed, entry=derived.entry)


def refused(kernel: CorpusKernel, problem: str) -> CorpusKernel:
    """The kernel, not to be judged; a problem's source is not carried along."""
    return replace(kernel, problem=problem, source="")


def without_duplicates(kernels: Iterable[CorpusKernel]) -> list[CorpusKernel]:
    """All kernels; the second of two equal texts for one task is not judged again."""
    seen: set[tuple[str, str, str]] = set()
    kept: list[CorpusKernel] = []
    for kernel in kernels:
        same = (kernel.task, kernel.sha256, kernel.entry)
        if not kernel.problem and same in seen:
            kernel = refused(kernel, "the same text as another kernel of its task")
        elif not kernel.problem:
            seen.add(same)
        kept.append(kernel)
    return kept
