"""What the header of a .cu file says, and how it is told that it says nothing."""

from __future__ import annotations

import pytest

from verifier.conventions.errors import EntryError
from verifier.conventions.header import LaunchLine, Temp, read_header


def test_a_launch_reads_like_cuda() -> None:
    header = read_header("// @launch rows<T, 4><<<dim3(M, cdiv(N, 8)), 256, 4 * N>>>(x, y, N)\n")
    line = LaunchLine("rows<T, 4>", ("M", "cdiv(N, 8)"), (256,), "4 * N", ("x", "y", "N"))
    assert header.launches == (line,)


def test_several_launches_keep_their_order() -> None:
    header = read_header("// @launch a<<<1, 1>>>(x)\n// @launch b<<<1, 1>>>(y)\n")
    assert [line.kernel for line in header.launches] == ["a", "b"]


def test_division_may_be_written_as_in_c() -> None:
    header = read_header("// @launch a<<<(N + 255) / 256, 256>>>(x)\n")
    assert header.launches[0].grid == ("(N + 255) // 256",)


def test_parentheses_that_do_not_enclose_all_are_part_of_one_size() -> None:
    header = read_header("// @launch a<<<(N + 1) * (M + 1), 1>>>(x)\n")
    assert header.launches[0].grid == ("(N + 1) * (M + 1)",)


def test_temps_and_dtypes_are_declared_beside_the_launches() -> None:
    text = "// @temp part: float32[M, 4]\n// @dtypes T: float32, float16\n// @launch a<<<1, 1>>>(x)"
    header = read_header(text)
    assert header.temps == (Temp("part", "float32", ("M", 4)),)
    assert header.dtypes == {"T": ("float32", "float16")}


def test_integers_of_the_source_are_known_to_expressions() -> None:
    text = "#define TILE 32\nconstexpr int BLOCK = 128;\n// @launch a<<<1, BLOCK>>>(x)\n"
    assert read_header(text).constants == {"TILE": 32, "BLOCK": 128}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("int x;", "does not say how to launch it"),
        ("// @lunch a<<<1, 1>>>(x)", "line 1: unknown word '@lunch'"),
        ("// @launch a(x)", "does not read 'name<<<grid, block, shared>>>"),
        ("// @launch a<<<1>>>(x)", "grid, block and"),
        ("// @launch a<<<(1, 2, 3, 4), 1>>>(x)", "one to three sizes"),
        ("// @launch a<<<import os, 1>>>(x)", "no shape expression"),
        ("// @temp part float32\n// @launch a<<<1, 1>>>(x)", "name: dtype[sizes]"),
        ("// @launch a<<<1, 1>>>(x)\n" * 65, "at most 64 launches"),
    ],
)
def test_a_header_that_does_not_fit_is_named_with_its_line(line: str, complaint: str) -> None:
    with pytest.raises(EntryError, match=complaint.replace("[", r"\[").replace("<", "<")):
        read_header(line)
