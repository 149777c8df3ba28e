"""TritonBench: predictions of many models for two sets of tasks.

A checkout holds ``LLM_generated/**/*.jsonl`` (a line a prediction), and ``data/TritonBench_T_v1/``
and ``data/TritonBench_G_v1/`` (a file a task: the reference, a line of 146 #, the test). The T
tasks have references in torch. Those of G are Triton kernels themselves, which float64 has no use
for; the G tasks for which verifier/audit/references holds a torch function are judged by that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verifier.audit.corpus import Content, Corpus, CorpusError, CorpusKernel
from verifier.audit.deriving import Definition, Derived, derive_all
from verifier.audit.predictions import as_called, code_of, without_duplicates

ABOUT: Final = "checkout of thunlp/TritonBench: LLM_generated/**/*.jsonl and data/"
CORPUS: Final = "TritonBench"
SEPARATOR: Final = "#" * 146
REFERENCES: Final = Path(__file__).parents[1] / "references" / "tritonbench_g"
NO_REFERENCE: Final = "its reference is a Triton kernel, and we hold no torch function for it"


@dataclass(frozen=True, slots=True)
class Prediction:
    """One line of a jsonl file."""

    channel: str
    """'T' or 'G'."""
    author: str
    origin: str
    file: str
    """The task's file, '' where none fits the line."""
    code: str


def read(root: Path) -> Corpus:
    """The corpus in a checkout. Raises CorpusError where it is none."""
    definitions = {one.name: one for one in _definitions(root)}
    predictions = list(_predictions(root))
    derived = derive_all(definitions.values())
    kernels = [_kernel(one, definitions, derived) for one in predictions]
    tasks = {name: one.task for name, one in derived.items() if one.task is not None}
    return Corpus(tasks, tuple(without_duplicates(kernels)))


# --- tasks


def _name(channel: str, file: str) -> str:
    return f"tritonbench-{channel.lower()}-{Path(file).stem.lower().strip('_').replace('_', '-')}"


def _definitions(root: Path) -> Iterator[Definition]:
    for path in sorted((root / "data" / "TritonBench_T_v1").glob("*.py")):
        code, test = halves(path)
        yield _definition("T", path.name, code, test)
    for path in sorted(REFERENCES.glob("*.py")):
        upstream = root / "data" / "TritonBench_G_v1" / path.name
        if upstream.exists():
            yield _definition("G", path.name, path.read_text(encoding="utf-8"), halves(upstream)[1])


def halves(path: Path) -> tuple[str, str]:
    """Reference and test of a task file. Raises CorpusError where the line between is missing."""
    code, line, test = path.read_text(encoding="utf-8").partition(SEPARATOR)
    if not line:
        raise CorpusError(f"{path}: no line of 146 # between reference and test")
    return code, test


def _definition(channel: str, file: str, code: str, test: str) -> Definition:
    stem = Path(file).stem
    return Definition(
        name=_name(channel, file),
        title=stem.replace("_", " "),
        category=f"{channel}: {category_of(stem)}",
        code=code,
        test=test,
        stem=stem,
    )


_CATEGORIES: Final = (
    ("convolution and pooling", ("conv", "pool", "grid_sample", "pixel_shuffle")),
    ("attention", ("attention", "attn", "transformer", "flash")),
    ("linear algebra", ("cholesky", "qr", "svd", "lu", "eig", "det", "solve", "inverse", "ldl")),
    ("matrix product", ("matmul", "mm", "bmm", "linear", "dot", "mv", "gemm", "vec", "matrix")),
    ("normalisation", ("norm", "rms", "softmax", "batch_norm")),
    ("loss", ("loss", "entropy", "kl")),
    ("reduction", ("sum", "mean", "max", "min", "std", "argmax", "logsumexp", "cumsum")),
    ("indexing", ("index", "gather", "embedding", "copy", "permute", "select", "cache", "repeat")),
)


def category_of(stem: str) -> str:
    """A class of ops, read off the task's name."""
    for category, words in _CATEGORIES:
        if any(word in stem.lower() for word in words):
            return category
    return "elementwise"


# --- predictions


def _predictions(root: Path) -> Iterator[Prediction]:
    files = sorted((root / "LLM_generated").glob("**/*.jsonl"))
    if not files:
        raise CorpusError(f"{root}: no LLM_generated/**/*.jsonl, as TritonBench has them")
    finders = {"T": _finder_t(root), "G": _finder_g(root)}
    for path in files:
        channel = "T" if "_T_" in path.parent.name else "G"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            row = json.loads(line)
            yield Prediction(
                channel=channel,
                author=path.stem.removeprefix("output_"),
                origin=f"{path.relative_to(root)}:{number}",
                file=finders[channel](row),
                code=code_of(str(row.get("predict", ""))),
            )


def _finder_t(root: Path) -> Any:
    """A line's task by the description of it that the prompt quotes, as upstream finds it."""
    rows = json.loads((root / "data" / "TritonBench_T_v1.jsonl").read_text(encoding="utf-8"))
    files = {_squeezed(row["description"]): str(row["file"]) for row in rows}

    def find(row: dict[str, Any]) -> str:
        prompt = str(row.get("instruction") or row.get("prompt") or "")
        described = prompt.rpartition("Functional Description: ")[2]
        wanted = _squeezed(described.partition("Wrapper Entry Information:")[0])
        exact = files.get(wanted)
        return exact or next((f for text, f in files.items() if wanted and wanted in text), "")

    return find


def _finder_g(root: Path) -> Any:
    """A line's task by the reference solution that it carries as its label."""
    folder = root / "data" / "TritonBench_G_v1"
    files = {_squeezed(halves(path)[0]): path.name for path in sorted(folder.glob("*.py"))}

    def find(row: dict[str, Any]) -> str:
        label = str(row.get("label", "")).replace("<|im_end|>", "").replace("<|EOT|>", "")
        wanted = _squeezed(label)
        exact = files.get(wanted)
        return exact or next((f for text, f in files.items() if wanted and wanted in text), "")

    return find


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _kernel(
    one: Prediction, definitions: dict[str, Definition], derived: dict[str, Derived]
) -> CorpusKernel:
    name = _name(one.channel, one.file) if one.file else ""
    no_task = NO_REFERENCE if one.channel == "G" else "no task of this name"
    answer = derived.get(name, Derived(name, problem=no_task if one.file else "no task fits it"))
    kernel = CorpusKernel(
        key=f"tritonbench/{one.origin.removeprefix('LLM_generated/')}",
        corpus=CORPUS,
        author=one.author,
        task=name,
        category=definitions[name].category if name in definitions else f"{one.channel}: other",
        content=Content.NOTHING,
        origin=one.origin,
        sha256="",
        source=one.code,
    )
    return as_called(kernel, answer)
