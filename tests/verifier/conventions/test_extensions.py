"""Extensions: who builds them, what is kept, and what is said where they cannot be built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from tests.verifier.conventions.conftest import Load
from verifier.candidate.builds import Builds, Built, build_key
from verifier.contract import Contract
from verifier.conventions.extensions import first_error
from verifier.subject import ReplyKind

INLINE: Final = """
import torch
from torch.utils.cpp_extension import load_inline
module = load_inline("rows", cpp_sources="torch::Tensor f(torch::Tensor x);",
                     cuda_sources="__global__ void k() {}", functions=["f"])
def run(x):
    return module.f(x)
"""


def test_an_extension_is_no_fault_where_there_is_no_gpu(load: Load, rows: Contract) -> None:
    reply = load(rows, INLINE).call([torch.ones(2, 3)])
    assert reply.kind is ReplyKind.UNSUPPORTED
    assert not reply.chosen
    assert "there is none here" in reply.detail


def test_a_kernel_that_catches_that_is_judged_for_what_it_does(load: Load, rows: Contract) -> None:
    source = INLINE.replace("module = ", "try:\n    module = ", 1).replace(
        "def run", "except Exception:\n    pass\ndef run"
    )
    reply = load(rows, source).call([torch.ones(2, 3)])
    assert reply.kind is ReplyKind.RAISED


class Maker:
    """Counts what it builds."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, request: Mapping[str, Any]) -> Built:
        self.asked.append(request)
        return self.built


def test_the_same_texts_are_built_once(tmp_path: Path) -> None:
    maker = Maker(Built(b"library"))
    builds = Builds(maker, tmp_path)
    assert [builds.get({"name": "a"}) for _ in range(2)] == [Built(b"library")] * 2
    assert len(maker.asked) == 1


def test_any_other_text_or_flag_is_another_build(tmp_path: Path) -> None:
    maker = Maker(Built(b"library"))
    builds = Builds(maker, tmp_path)
    for request in ({"name": "a"}, {"name": "a", "flags": ["-O1"]}, {"name": "b"}):
        builds.get(request)
    assert len(maker.asked) == 3


def test_a_failed_build_is_not_kept(tmp_path: Path) -> None:
    maker = Maker(Built(problem="line 1: wrong"))
    builds = Builds(maker, tmp_path)
    builds.get({"name": "a"})
    assert builds.get({"name": "a"}).problem == "line 1: wrong"
    assert len(maker.asked) == 2


def test_a_build_of_megabytes_is_refused(tmp_path: Path) -> None:
    maker = Maker(Built(b"library"))
    assert "bytes to build" in Builds(maker, tmp_path).get({"name": "a" * (5 << 20)}).problem
    assert not maker.asked


def test_a_private_folder_ends_with_its_owner() -> None:
    builds = Builds(Maker(Built(b"library")))
    builds.get({"name": "a"})
    folder = builds.folder
    assert folder is not None
    builds.close()
    assert not folder.exists()


def test_the_key_changes_with_the_request() -> None:
    assert build_key("{}") != build_key("[]")


def test_of_a_failed_build_the_compilers_error_is_shown() -> None:
    log = (
        "Error building extension 'a': [1/2] nvcc\nFAILED: x.o\n/b/cuda.cu(3): error: no\nninja: x"
    )
    assert first_error(log) == "/b/cuda.cu(3): error: no"
