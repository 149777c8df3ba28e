"""The part of the CUDA driver API that one launch needs, through ctypes, in torch's own context."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import torch

from verifier.conventions.calling import Grid
from verifier.conventions.nvrtc import Parameter

_MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_PLENTY: Final = 48 << 10
"""Bytes of shared memory that a block may ask for without being asked twice."""

_INTEGERS: Final = {8: ctypes.c_int64, 4: ctypes.c_int32, 2: ctypes.c_int16, 1: ctypes.c_int8}
_FLOATS: Final[dict[int, Any]] = {8: ctypes.c_double, 4: ctypes.c_float}


class DriverError(RuntimeError):
    """The driver refused a call."""


@lru_cache(maxsize=1)
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int, doing: str) -> None:
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        reason = (text.value or b"unknown error").decode()
        raise DriverError(f"CUDA error: {reason} ({status}) when {doing}")


class Function:
    """One kernel of a loaded image."""

    def __init__(self, image: bytes, symbol: str) -> None:
        self._image = image  # the driver may read it later
        self._module, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_driver().cuModuleLoadData(ctypes.byref(self._module), image), "loading it")
        _check(
            _driver().cuModuleGetFunction(
                ctypes.byref(self._handle), self._module, symbol.encode()
            ),
            f"looking for {symbol}",
        )
        self._shared = _PLENTY

    def launch(self, grid: Grid, block: Grid, shared: int, values: Sequence[Any]) -> None:
        """On torch's current stream. ``values`` are ctypes objects, one a parameter."""
        if shared > self._shared:
            status = _driver().cuFuncSetAttribute(self._handle, _MAX_DYNAMIC_SHARED, shared)
            _check(status, f"asking for {shared} bytes of shared memory a block")
            self._shared = shared
        places = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        pointers = (ctypes.c_void_p * len(places))(*places)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = _driver().cuLaunchKernel(
            self._handle, *grid, *block, shared, stream, pointers, None
        )
        _check(status, f"launching a grid of {grid} blocks of {block} threads")


def to_c(value: Any, parameter: Parameter) -> Any:
    """A tensor or number as the parameter wants it. Raises ValueError where it cannot be."""
    if isinstance(value, torch.Tensor):
        if parameter.nbytes != 8:
            raise ValueError(f"a tensor is passed where a {parameter.kind} is taken")
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(0)
    if parameter.kind.startswith("f") and parameter.nbytes in _FLOATS:
        return _FLOATS[parameter.nbytes](float(value))
    if parameter.kind == "struct" or parameter.nbytes not in _INTEGERS:
        raise ValueError(f"a number is passed where a {parameter.kind} is taken")
    if isinstance(value, float):
        raise ValueError(f"{value} is passed where an integer is taken; declare it float")
    return _INTEGERS[parameter.nbytes](int(value))
