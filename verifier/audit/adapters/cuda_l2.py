"""CUDA-L2: HGEMM kernels, a .cu file for each M_N_K, with fp16 or fp32 accumulation.

Each file defines a host function (a, b, b in column-major order, c) on torch tensors, so a kernel
here is Python that builds the file with load_inline and calls that function. What includes CUTLASS
is not judged: the sandbox has no CUTLASS headers. A GEMM promises the one size in its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from verifier.audit.corpus import (
    Content,
    Corpus,
    CorpusError,
    CorpusKernel,
    CorpusTask,
    content_of,
    sha256_of,
)
from verifier.audit.predictions import refused, without_duplicates

ABOUT: Final = "checkout of deepreinforce-ai/CUDA-L2: kernels/<gpu>_<types>/<M>_<N>_<K>.cu"
CORPUS: Final = "CUDA-L2"
MAX_SIZE: Final = 4096
"""Greatest M, N or K: the truth is computed in float64."""

_FOLDER: Final = re.compile(r"(?P<gpu>\w+?)_(?P<acc>F16|F32)F16F16F(?:16|32)")
_SIZES: Final = re.compile(r"(\d+)_(\d+)_(\d+)")
_HOST: Final = re.compile(r"\bvoid\s+(cuda_l2_\w+)\s*\(\s*torch::Tensor\s+a\b")
_CUTLASS: Final = re.compile(r'#\s*include\s*[<"](?:cute|cutlass)/')
_FLAGS: Final = (
    "-O3", "-std=c++17", "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_HALF2_OPERATORS__", "--expt-relaxed-constexpr", "--expt-extended-lambda",
    "--use_fast_math",
)  # fmt: skip
_REFERENCE: Final = "import torch\n\n\ndef reference(a, b):\n    return a @ b\n"


def read(root: Path) -> Corpus:
    """The corpus in a checkout. Raises CorpusError where it is none."""
    files = sorted((root / "kernels").glob("*/*.cu"))
    if not files:
        raise CorpusError(f"{root}: no kernels/<gpu>_<types>/<M>_<N>_<K>.cu, as CUDA-L2 has them")
    tasks: dict[str, CorpusTask] = {}
    kernels = list(_kernels(root, files, tasks))
    return Corpus(tasks, tuple(without_duplicates(kernels)))


def _kernels(root: Path, files: list[Path], tasks: dict[str, CorpusTask]) -> Iterator[CorpusKernel]:
    for path in files:
        folder, sizes = _FOLDER.fullmatch(path.parent.name), _SIZES.fullmatch(path.stem)
        if folder is None or sizes is None:
            continue
        m, n, k = (int(size) for size in sizes.groups())
        acc = {"F16": "float16", "F32": "float32"}[folder["acc"]]
        name = f"hgemm-{acc}-{m}-{n}-{k}"
        tasks.setdefault(name, _task(name, acc, m, n, k))
        yield _kernel(root, path, name, f"fp16 in, {acc} sums", (m, n, k))


def _kernel(
    root: Path, path: Path, task: str, category: str, sizes: tuple[int, ...]
) -> CorpusKernel:
    text = path.read_text(encoding="utf-8")
    host = _HOST.search(text)
    kernel = CorpusKernel(
        key=f"cuda-l2/{path.parent.name}/{path.stem}",
        corpus=CORPUS,
        author=f"CUDA-L2 {path.parent.name.partition('_')[0]}",
        task=task,
        category=category,
        content=content_of(text, cuda=True),
        origin=str(path.relative_to(root)),
        sha256=sha256_of(text),
        source=_python(text, host[1]) if host else "",
    )
    if kernel.content is Content.NOTHING or host is None:
        return refused(kernel, "no kernel, or no host function cuda_l2_... in the file")
    if _CUTLASS.search(text):
        return refused(kernel, "needs the CUTLASS headers")
    if max(sizes) > MAX_SIZE:
        return refused(kernel, f"a size above {MAX_SIZE}")
    return kernel


def _python(text: str, host: str) -> str:
    declared = f"void {host}(torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor);"
    return (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n\n"
        f"CUDA = {text!r}\n\n"
        f"MODULE = load_inline(\n    name={host!r},\n    cpp_sources={declared!r},\n"
        f"    cuda_sources=CUDA,\n    functions=[{host!r}],\n"
        f"    extra_cuda_cflags={list(_FLAGS)!r},\n)\n\n\n"
        "def run(a, b):\n"
        "    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)\n"
        "    by_columns = b.t().contiguous().view(b.shape)\n"
        f"    MODULE.{host}(a, b, by_columns, c)\n"
        "    return c\n"
    )


def _task(name: str, acc: str, m: int, n: int, k: int) -> CorpusTask:
    dims = {d: {"candidates": [s], "usual": s, "minimum": s, "maximum": s}
            for d, s in (("M", m), ("N", n), ("K", k))}  # fmt: skip
    contract = {
        "slug": name,
        "title": f"HGEMM {m} x {n} x {k}, {acc} sums",
        "category": "matrix product",
        "dims": dims,
        "inputs": [
            {"name": "a", "shape": ["M", "K"], "dtype": "float16"},
            {"name": "b", "shape": ["K", "N"], "dtype": "float16"},
        ],
        "outputs": [{"name": "c", "shape": ["M", "N"], "dtype": "float16"}],
        "behaviour": {
            "accumulate": acc,
            "fixed_shape": True,
            "reductions": [{"kind": "dot", "dim": "K", "inputs": ["a", "b"], "output": "c"}],
        },
    }
    return CorpusTask(name, json.dumps(contract), _REFERENCE)
