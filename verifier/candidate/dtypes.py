"""The dtypes that travel, and the bytes that poison holds in each of them."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import torch

from verifier.subject import Poison

_NAMES: Final = (  # noqa: SIM905 - reads better as text
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu complex32 complex64 complex128 int64 int32 int16 int8 uint64 uint32 uint16 "
    "uint8 bool"
).split()

DTYPES: Final[dict[str, torch.dtype]] = {name: getattr(torch, name) for name in _NAMES}
NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}

_WORDS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@cache
def poison_word(dtype: torch.dtype, poison: Poison) -> bytes:
    """The bytes of one poisoned element (of one component, for complex dtypes)."""
    if dtype.is_complex:
        dtype = dtype.to_real()
    if dtype is torch.bool:
        return b"\x01"
    if poison is Poison.INT_MAX:
        return _int_max(dtype)
    value = _float(dtype, poison) if dtype.is_floating_point else _int(dtype, poison)
    return _bytes(torch.tensor([value], dtype=_wide(dtype)).to(dtype))


def _int_max(dtype: torch.dtype) -> bytes:
    signed = dtype.is_floating_point or dtype.is_signed
    return b"\xff" * (dtype.itemsize - 1) + (b"\x7f" if signed else b"\xff")


def _float(dtype: torch.dtype, poison: Poison) -> float:
    if poison is Poison.NAN:
        return math.nan
    top = math.log2(torch.finfo(dtype).max)
    return 2.0**100 if top > 100 else 2.0 ** (math.floor(top) - 1)


def _int(dtype: torch.dtype, poison: Poison) -> int:
    greatest = int(torch.iinfo(dtype).max)
    return greatest if poison is Poison.NAN else min(greatest, 2**30)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """A dtype in which the value can be written down before it is rounded to ``dtype``."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize == 1 else dtype


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.view(torch.uint8).tolist())


def fill(zone: torch.Tensor, dtype: torch.dtype, poison: Poison) -> None:
    """Fill ``zone`` (uint8, a whole number of elements, aligned to them) with poison."""
    words, value = _in_words(zone, dtype, poison)
    words.fill_(value)


def elsewise(zone: torch.Tensor, dtype: torch.dtype, poison: Poison) -> torch.Tensor:
    """Where, word by word, such a zone holds something else."""
    words, value = _in_words(zone, dtype, poison)
    return words != value


def _in_words(zone: torch.Tensor, dtype: torch.dtype, poison: Poison) -> tuple[torch.Tensor, int]:
    """A zone in words of the size of an element, and what each holds that is poisoned."""
    word = poison_word(dtype, poison)
    value = int.from_bytes(word, "little", signed=len(word) > 1)
    return zone.view(_WORDS[len(word)]), value


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage behind a tensor, as a uint8 view of it."""
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return raw.set_(tensor.untyped_storage())
