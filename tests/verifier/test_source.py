"""What is read off a kernel's source: tile sizes, however they are written, at no cost."""

from __future__ import annotations

import pytest

from verifier.records import Language
from verifier.source import read_source


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        ("BLOCK = 64", (64,)),
        ("BLOCK = 1 << 12", (4096,)),
        ("BLOCK = 2 ** 12", (4096,)),
        ("BLOCK = TILE = 4 * 32", (128,)),
        ("BLOCK: int = 256", (256,)),
        ("block = min(next_power_of_2(n), 4096)", (4096,)),
        ("block = max(64, min(n, 1 << 12))", (64, 4096)),
        ("block = 64 if n > 300 else 32", (32, 64)),
        ("k(BLOCK=constexpr(128))", (128,)),
        ("Config({'BLOCK_M': 8 * 16})", (128,)),
        ("def k(x, /, BLOCK=16, *, TILE=32): pass", (16, 32)),
        ("BLOCK = n; width = 64", ()),
        ("BLOCK = x.shape[-1]", ()),
        ("BLOCK = 65536", (65536,)),
        ("BLOCK = 131072", ()),
    ],
)
def test_tile_sizes_are_found_in_whatever_form(text: str, tiles: tuple[int, ...]) -> None:
    assert read_source(text.encode()).tile_sizes == tiles


def test_many_small_tiles_do_not_hide_the_greatest() -> None:
    text = "\n".join(f"BLOCK_{n} = {n}" for n in (2, 3, 4, 5, 6, 7, 2048, 4096))
    assert read_source(text.encode()).tile_sizes == (2, 3, 2048, 4096)


@pytest.mark.parametrize(
    "text",
    [
        "BLOCK = 9 ** 9 ** 9 ** 9",
        "BLOCK = 1 << 10 ** 12",
        "BLOCK = 1 // 0",
        "BLOCK = " + "+".join(["1"] * 900),
        "BLOCK = " + "(" * 100_000,
        "BLOCK = " + "max(" * 80 + "1" + ")" * 80,
    ],
)
def test_hostile_expressions_cost_nothing_and_show_nothing(text: str) -> None:
    assert read_source(text.encode()).tile_sizes == ()


GLOBAL = "__global__ void f() {}"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (f"load_inline('f', '', {GLOBAL!r})", Language.CUDA),
        ("cpp.load_inline(name, cuda_sources=open(path).read())", Language.CUDA),
        ("K = cupy.RawKernel(code, 'f')", Language.CUDA),
        (f"SOURCE = {GLOBAL!r}\nmodule = build(SOURCE)", Language.CUDA),
        (f"module = build(sources=[{GLOBAL!r}])", Language.CUDA),
        ("import numpy\n# load_inline, __global__", Language.NUMPY),
        (f"import numpy\ndef run(x):\n    {GLOBAL!r}\n    return numpy.sqrt(x)", Language.NUMPY),
        (f"import triton\nOLD = {GLOBAL!r}", Language.TRITON),
        ("import torch\nload_inline = None", Language.TORCH),
        (f"// @launch\n{GLOBAL}", Language.CUDA),
    ],
)
def test_the_language_is_what_is_called_and_no_word(text: str, language: Language) -> None:
    assert read_source(text.encode()).language is language
