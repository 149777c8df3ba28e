"""What an audit judges: kernels of a corpus with the tasks that they were written for, as data."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from verifier.contract import contract_digest


class CorpusError(ValueError):
    """The corpus is not what its adapter reads; the message says what was looked for and where."""


class Content(StrEnum):
    """What a source holds, as far as reading it tells."""

    TRITON = "triton"
    CUDA = "cuda"
    DSL = "dsl"
    """A kernel language on top of the two: CuTe DSL, TileLang, Helion and the like."""
    LIBRARY = "library"
    """No kernel of its own: a composition of library calls."""
    NOTHING = "nothing"
    """No Python or CUDA code at all."""

    @property
    def is_kernel(self) -> bool:
        return self in {Content.TRITON, Content.CUDA, Content.DSL}


_CUDA: Final = re.compile(r"\b__global__\b|\bload_inline\b|\bRawKernel\b|\bRawModule\b")
_TRITON: Final = re.compile(r"@\s*(?:triton\s*\.\s*)?jit\b")
_TRITON_IMPORT: Final = re.compile(r"^\s*(?:import|from)\s+triton\b", re.MULTILINE)
_DSL: Final = re.compile(
    r"^\s*(?:import|from)\s+(?:tilelang|helion|cutlass\.cute|tvm|cuda\.tile|thunderkittens)\b",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(r"^\s*#(?!include|define|if|el|en|un|pragma).*$", re.MULTILINE)


def content_of(source: str, *, cuda: bool = False) -> Content:
    """What a source holds. ``cuda`` says that it is a .cu file. Comments do not count."""
    if cuda:
        return Content.CUDA if _CUDA.search(source) else Content.NOTHING
    if not source.strip() or parse(source) is None:
        return Content.NOTHING
    text = _COMMENT.sub("", source)
    if _CUDA.search(text):
        return Content.CUDA
    if _TRITON_IMPORT.search(text) and _TRITON.search(text):
        return Content.TRITON
    return Content.DSL if _DSL.search(text) else Content.LIBRARY


def parse(source: str) -> ast.Module | None:
    """The syntax tree; None where the text is no Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def sha256_of(source: str) -> str:
    """The content hash of a source."""
    return hashlib.sha256(source.encode("utf-8", errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class CorpusTask:
    """A task folder's two files as text."""

    name: str
    contract: str
    reference: str

    @property
    def digest(self) -> str:
        """The identity of the task, as a verdict names it."""
        return contract_digest(self.contract, self.reference)


@dataclass(frozen=True, slots=True)
class CorpusKernel:
    """One kernel of a corpus. ``key`` names it within the audit, ``origin`` is the file it is from.

    A kernel with a ``problem`` is not judged: the reason is counted instead. ``sha256`` is that of
    the text in the corpus; ``source``, which is what runs, may have a few lines more.
    """

    key: str
    corpus: str
    author: str
    task: str
    category: str
    content: Content
    origin: str
    sha256: str
    source: str = ""
    entry: str = "run"
    problem: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)
    """What the corpus itself says of the kernel: accepted, speedup, audited as clean."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Kernels and their tasks by name; each kernel without a problem has its task here."""

    tasks: Mapping[str, CorpusTask]
    kernels: tuple[CorpusKernel, ...]

    def __post_init__(self) -> None:
        keys = [kernel.key for kernel in self.kernels]
        if len(set(keys)) != len(keys):
            raise CorpusError("two kernels of this corpus share a key")
        missing = {k.task for k in self.judgeable} - self.tasks.keys()
        if missing:
            raise CorpusError(f"kernels without their task: {', '.join(sorted(missing)[:5])}")

    @property
    def judgeable(self) -> tuple[CorpusKernel, ...]:
        return tuple(kernel for kernel in self.kernels if not kernel.problem)
