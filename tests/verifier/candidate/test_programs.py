"""What a launch runs, as the interpreter and the compiler can agree on it."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import triton.language as tl
from triton.runtime.cache import FileCacheManager
from triton.runtime.interpreter import FunctionRewriter, InterpretedFunction
from triton.runtime.jit import JITFunction

from verifier.candidate.programs import follow, program, settings
from verifier.candidate.replies import is_surroundings

SCALE = tl.constexpr(2)


def double(x_ptr, y_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, SCALE * tl.load(x_ptr + cols))


def triple(x_ptr, y_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, 3 * tl.load(x_ptr + cols))


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rewrite_ast", "_transform_ast"):
        monkeypatch.setattr(FunctionRewriter, name, getattr(FunctionRewriter, name))
    monkeypatch.setattr(InterpretedFunction, "rewritten_fn", {})
    follow(FunctionRewriter)


def interpreted(function: Any) -> Any:
    return InterpretedFunction(function)


def test_one_kernel_is_one_program_to_both_engines() -> None:
    assert program(interpreted(double)) == program(JITFunction(double))
    assert program(interpreted(double)) != program(JITFunction(triple))


def test_a_value_that_the_kernel_names_is_part_of_its_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = program(JITFunction(double))
    monkeypatch.setitem(double.__globals__, "SCALE", tl.constexpr(3))
    assert program(interpreted(double)) != compiled


def test_a_language_of_its_own_is_part_of_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = program(JITFunction(double))
    monkeypatch.setitem(double.__globals__, "tl", types.ModuleType(tl.__name__))
    assert program(interpreted(double)) != compiled


@pytest.mark.parametrize("part", ["rewrite", "rewriter", "made", "code"])
def test_what_keeps_the_interpreter_from_the_text_shows(part: str) -> None:
    kernel, other = interpreted(double), interpreted(triple)
    if part == "made":
        kernel.rewritten_fn[double] = other.rewrite()
    elif part == "code":
        kernel.rewrite().__code__ = other.rewrite().__code__
    else:
        setattr(kernel, part, getattr(other, part))
    assert program(kernel) != program(JITFunction(double))


def test_settings_are_the_plain_values_that_a_kernel_takes() -> None:
    kernel = interpreted(double)
    here = settings(kernel, (object(), object()), {"BLOCK": 16, "num_warps": 4})
    assert here == settings(kernel, (object(), object(), tl.constexpr(16)), {"num_warps": 1})
    assert here != settings(kernel, (object(), object()), {"BLOCK": 32})


def test_an_error_of_the_system_inside_triton_is_none_of_the_kernels(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found:
        FileCacheManager("0" * 8).put("x", str(tmp_path / "no" / "folder"))
    below = found.value.__traceback__
    assert below is not None
    assert is_surroundings(found.value.with_traceback(below.tb_next))
    with pytest.raises(FileNotFoundError) as own:
        (tmp_path / "nothing").read_text()
    assert not is_surroundings(own.value)
