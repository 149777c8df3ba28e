"""Sources, predictions and adapters, on samples that were written for these tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.rows import kernel
from verifier.audit.adapters import ADAPTERS, cuda_l2, find, plain
from verifier.audit.corpus import Content, CorpusError, CorpusTask, content_of
from verifier.audit.deriving import Derived
from verifier.audit.predictions import as_called, code_of, defines, without_duplicates

TRITON = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\n\ndef f(x):\n    return x\n"
DERIVED = Derived("t", CorpusTask("t", "{}", ""), "f", "audited", "\n\ndef audited(a0): ...\n")


@pytest.mark.parametrize(
    ("source", "content"),
    [
        (TRITON, Content.TRITON),
        ("from triton import jit\n@jit\ndef k(): pass\n", Content.TRITON),
        ("import triton\ndef f(x):\n    return x\n", Content.LIBRARY),
        ("import torch\n# __global__ is only spoken of\n", Content.LIBRARY),
        ("S = '__global__ void k() {}'\n", Content.CUDA),
        ("import tilelang\n", Content.DSL),
        ("I am sorry, but", Content.NOTHING),
        ("", Content.NOTHING),
    ],
)
def test_content_is_read_off_the_source(source: str, content: Content) -> None:
    assert content_of(source) is content


def test_the_longest_block_that_is_python_is_the_code() -> None:
    text = (
        "Here:\n```python\nx = 1\ny = 2\n```\nor\n```\nnot python at all, but longer than it\n```"
    )
    assert code_of(text) == "x = 1\ny = 2\n"


def test_an_answer_without_fences_is_taken_whole() -> None:
    assert code_of("x = 1\n<|im_end|>") == "x = 1\n"


def test_a_name_is_defined_at_the_top_level_only() -> None:
    source = "try:\n    def f(): ...\nexcept Exception:\n    pass\ndef g():\n    def h(): ...\n"
    assert defines(source, "f")
    assert not defines(source, "h")


def test_a_prediction_gets_the_call_of_its_test_appended() -> None:
    found = as_called(kernel("a", source=TRITON), DERIVED)
    assert found.problem == ""
    assert found.source.endswith(DERIVED.shim)
    assert found.entry == "audited"


def test_a_prediction_without_the_function_is_not_judged() -> None:
    found = as_called(kernel("a", source="import triton\n@triton.jit\ndef g(): ...\n"), DERIVED)
    assert "does not define" in found.problem


def test_the_same_text_is_judged_once() -> None:
    one, other = without_duplicates([kernel("a"), kernel("b")])
    assert one.problem == ""
    assert "the same text" in other.problem


def test_every_adapter_is_there_and_says_what_it_reads() -> None:
    assert all(find(name).ABOUT for name in ADAPTERS)


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_an_empty_folder_is_no_corpus(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError):
        find(name).read(tmp_path)


def hgemm(folder: Path, name: str, text: str) -> None:
    target = folder / "kernels" / "a100_F16F16F16F16"
    target.mkdir(parents=True, exist_ok=True)
    (target / name).write_text(text)


HOST = "void cuda_l2_a100_fp16(torch::Tensor a, torch::Tensor b, torch::Tensor c, torch::Tensor d)"


def test_an_hgemm_file_becomes_a_kernel_of_its_size(tmp_path: Path) -> None:
    hgemm(tmp_path, "64_128_256.cu", f"__global__ void k();\n{HOST} {{}}\n")
    corpus = cuda_l2.read(tmp_path)
    contract = json.loads(corpus.tasks["hgemm-float16-64-128-256"].contract)
    assert contract["dims"]["K"]["usual"] == 256
    assert contract["behaviour"]["accumulate"] == "float16"
    assert "load_inline" in corpus.kernels[0].source


def test_an_hgemm_file_that_needs_cutlass_is_not_judged(tmp_path: Path) -> None:
    hgemm(tmp_path, "64_64_64.cu", f"#include <cute/tensor.hpp>\n__global__ void k();\n{HOST} {{}}")
    assert cuda_l2.read(tmp_path).kernels[0].problem == "needs the CUTLASS headers"


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    contract = {
        "slug": "relu", "title": "ReLU", "category": "elementwise",
        "dims": {"N": {"candidates": [4], "usual": 4}},
        "inputs": [{"name": "x", "shape": ["N"], "dtype": "float32"}],
        "outputs": [{"name": "out", "shape": ["N"], "dtype": "float32"}],
    }  # fmt: skip
    task = tmp_path / "relu"
    (task / "kernels").mkdir(parents=True)
    (task / "task.json").write_text(json.dumps(contract))
    (task / "reference.py").write_text("def reference(x):\n    return x.relu()\n")
    (task / "kernels" / "mine.py").write_text("def run(x):\n    return x.relu()\n")
    corpus = plain.read(tmp_path)
    assert [one.key for one in corpus.kernels] == ["relu/kernels/mine.py"]
    assert corpus.kernels[0].content is Content.LIBRARY
