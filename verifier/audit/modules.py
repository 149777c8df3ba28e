"""KernelBench-style problems (``Model``, ``get_inputs``) as tasks, their solutions as kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from verifier.audit.corpus import Content, Corpus, CorpusKernel, content_of, sha256_of
from verifier.audit.deriving import Definition, Kind, derive_all
from verifier.audit.predictions import defines, refused, without_duplicates

ENTRIES: Final = ("ModelNew", "Model")
"""Names that a solution's class may have, in order of preference."""


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution as its corpus has it. ``problem`` is the text of its problem."""

    key: str
    origin: str
    author: str
    category: str
    problem_name: str
    problem: str
    source: str
    claims: dict[str, str] = field(default_factory=dict)


def task_name(name: str, problem: str) -> str:
    """A name that tells apart problems of one number but different text."""
    return f"{name}-{hashlib.sha256(problem.encode()).hexdigest()[:8]}"


def corpus_of(corpus: str, solutions: Iterable[Solution]) -> Corpus:
    """The corpus of some solutions; each problem is imported once."""
    listed = list(solutions)
    problems = {task_name(one.problem_name, one.problem): one for one in listed}
    derived = derive_all(
        Definition(
            name=name,
            title=one.problem_name,
            category=one.category,
            code=one.problem,
            test="",
            stem="",
            kind=Kind.MODULE,
        )
        for name, one in problems.items()
    )
    tasks = {name: one.task for name, one in derived.items() if one.task is not None}
    reasons = {name: one.problem for name, one in derived.items() if one.task is None}
    kernels = [_kernel(corpus, one, reasons) for one in listed]
    return Corpus(tasks, tuple(without_duplicates(kernels)))


def _kernel(corpus: str, one: Solution, reasons: dict[str, str]) -> CorpusKernel:
    kernel = CorpusKernel(
        key=one.key,
        corpus=corpus,
        author=one.author,
        task=task_name(one.problem_name, one.problem),
        category=one.category,
        content=content_of(one.source),
        origin=one.origin,
        sha256=sha256_of(one.source),
        source=one.source,
        claims=one.claims,
    )
    if kernel.content is Content.NOTHING:
        return refused(kernel, "not Python code")
    if kernel.task in reasons:
        return refused(kernel, f"its task cannot be judged: {reasons[kernel.task]}")
    entry = next((name for name in ENTRIES if defines(one.source, name)), "")
    if not entry:
        return refused(kernel, "defines neither ModelNew nor Model")
    return replace(kernel, entry=entry)
