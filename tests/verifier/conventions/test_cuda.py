"""CUDA C++ files on a machine without GPU: compiled, with an honest word about the rest."""

from __future__ import annotations

import pytest
import torch

from tests.verifier.conventions.conftest import SOFTMAX, Load
from verifier.contract import Contract
from verifier.conventions import nvrtc
from verifier.conventions.cuda import bind_dims, bind_dtypes
from verifier.conventions.errors import UnsupportedError
from verifier.conventions.nvrtc import Parameter, first_error, read_parameters
from verifier.subject import Reply, ReplyKind


def compiler_missing() -> bool:
    try:
        nvrtc.library()
    except UnsupportedError:
        return True
    return False


needs_nvrtc = pytest.mark.skipif(
    compiler_missing(), reason="NVRTC IS NOT INSTALLED: NO CUDA SOURCE IS COMPILED IN THESE TESTS"
)


def reply(load: Load, rows: Contract, source: str) -> Reply:
    return load(rows, source).call([torch.ones(2, 3)])


@needs_nvrtc
def test_a_good_file_is_compiled_and_said_to_be_only_that(load: Load, rows: Contract) -> None:
    found = reply(load, rows, SOFTMAX)
    assert (found.kind, found.detail) == (
        ReplyKind.UNSUPPORTED,
        "compiled only: there is no GPU here to run it on",
    )
    assert not found.chosen


@needs_nvrtc
@pytest.mark.parametrize(
    "header", ["cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h", "mma.h", "cstdint", "cmath"]
)
def test_the_usual_headers_are_found(load: Load, rows: Contract, header: str) -> None:
    assert reply(load, rows, f"#include <{header}>\n{SOFTMAX}").kind is ReplyKind.UNSUPPORTED


@needs_nvrtc
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("float most", "flot most", 'line 25: identifier "flot" is undefined: `flot most'),
        ("(x, y, N)", "(x, y)", "takes 3 parameters, @launch gives 2"),
        ("(x, y, N)", "(x, N, y)", "takes 'y' as a u32: no pointer"),
        ("(x, y, N)", "(x, out, N)", "'out' in @launch: this task has"),
        ("launch softmax<T>", "launch softmin<T>", "names what the source does not define"),
        ("<<<M,", "<<<Q,", "'Q' in @launch: this task has"),
        ("// @launch", "// @lunch", "unknown word '@lunch'"),
        ("template", '#include "nope.h"\ntemplate', 'cannot open source file "nope.h"'),
    ],
)
def test_a_mistake_is_named(load: Load, rows: Contract, old: str, new: str, complaint: str) -> None:
    found = reply(load, rows, SOFTMAX.replace(old, new, 1))
    assert found.kind is ReplyKind.LOAD_FAILED
    assert complaint in found.detail


@needs_nvrtc
def test_a_null_byte_is_no_crash(load: Load, rows: Contract) -> None:
    assert reply(load, rows, SOFTMAX + "\0").kind is ReplyKind.LOAD_FAILED


@needs_nvrtc
def test_a_file_cannot_be_read_into_the_source_from_outside(load: Load, rows: Contract) -> None:
    found = reply(load, rows, f'#include "/etc/shadow"\n{SOFTMAX}')
    assert "cannot open source file" in found.detail


@needs_nvrtc
def test_templates_without_an_end_are_stopped(load: Load, rows: Contract) -> None:
    deep = "template <int N> struct F { static const int v = F<N + 1>::v; };\n"
    source = deep + "__device__ int x = F<0>::v;\n" + SOFTMAX
    assert reply(load, rows, source).kind is not ReplyKind.RETURNED


def test_a_compiler_that_is_not_there_is_no_fault_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvrtc, "_libraries", lambda: iter(["libnvrtc-not-here.so"]))
    nvrtc.library.cache_clear()
    try:
        with pytest.raises(UnsupportedError, match="NVRTC is not installed"):
            nvrtc.library()
    finally:
        nvrtc.library.cache_clear()


def test_the_first_error_of_a_log_is_shown_with_its_source() -> None:
    log = 'kernel.cu(2): warning: unused\nkernel.cu(2): error: identifier "a" is undefined\n'
    assert first_error(log, "int b;\n  b = a;\n") == (
        'line 2: identifier "a" is undefined: `b = a;`'
    )


def test_an_error_in_a_header_names_the_header() -> None:
    log = "/usr/include/cuda_fp16.h(7): error: this is wrong\n"
    assert first_error(log, "int b;") == "cuda_fp16.h, line 7: this is wrong"


def test_parameters_are_read_from_ptx() -> None:
    ptx = """
    .visible .entry rows(
        .param .u64 .ptr .align 1 rows_param_0,
        .param .u32 rows_param_1,
        .param .f32 rows_param_2,
        .param .align 4 .b8 rows_param_3[12]
    )
    { ret; }"""
    assert read_parameters(ptx) == {
        "rows": (
            Parameter("u64", 8),
            Parameter("u32", 4),
            Parameter("f32", 4),
            Parameter("struct", 12),
        )
    }


def test_sizes_and_dtypes_are_read_off_the_inputs() -> None:
    item = {"name": "x", "shape": ["M", "2 * N", "N"], "dtype": "T"}
    signature = {"inputs": [item], "dims": ["M", "N"], "dtypes": {"T": "float32"}}
    values = {"x": torch.zeros(2, 6, 3, dtype=torch.float16)}
    assert bind_dims(signature, values) == {"M": 2, "N": 3}
    assert bind_dtypes(signature, values) == {"T": "float16"}


def test_a_size_that_no_input_shows_is_not_guessed() -> None:
    item = {"name": "x", "shape": ["2 * N"], "dtype": "float32"}
    with pytest.raises(UnsupportedError, match="axis that is N"):
        bind_dims({"inputs": [item], "dims": ["N"]}, {"x": torch.zeros(6)})
