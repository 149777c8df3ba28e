"""Which convention a source follows is read off its text and its task."""

from __future__ import annotations

import json

import pytest

from tests.verifier.conventions.conftest import SOFTMAX
from verifier.contract import Contract
from verifier.conventions.choose import choose, convention_of, is_cuda_file
from verifier.records import Language
from verifier.source import read_source

INLINE = 'import torch\nSOURCE = """\n#include <x>\n__global__ void f() {}\n"""\n'
SOLUTION = json.dumps(
    {"spec": {}, "sources": [{"path": "m.py", "content": "import triton\nBLOCK = 64\n"}]}
)


def test_a_cuda_file_answers_a_task_of_functions(rows: Contract) -> None:
    assert choose(rows, SOFTMAX).convention == "cuda"


def test_cuda_in_a_python_string_is_a_python_file() -> None:
    assert not is_cuda_file(INLINE)


def test_a_cuda_file_with_an_error_is_still_a_cuda_file() -> None:
    assert is_cuda_file("// @launch f<<<1, 1>>>(x)\n__globl__ void f(int) {")


def test_a_module_is_asked_for_by_its_task_alone() -> None:
    assert convention_of("kernelbench", SOFTMAX) == "kernelbench"


@pytest.mark.parametrize("wanted", ["function", "flashinfer"])
def test_a_solution_is_recognised_by_its_document(wanted: str) -> None:
    assert convention_of(wanted, SOLUTION) == "flashinfer"


def test_the_language_of_a_solution_is_that_of_its_files() -> None:
    assert read_source(SOLUTION.encode()).language is Language.TRITON


def test_the_threads_of_a_cuda_file_count_as_a_tile() -> None:
    facts = read_source(SOFTMAX.encode())
    assert (facts.language, facts.tile_sizes) == (Language.CUDA, (256,))
