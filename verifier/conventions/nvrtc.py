"""NVRTC, NVIDIA's compiler as a library: CUDA C++ to machine code, without a GPU or a toolkit.

Called through ctypes: a dozen functions whose ABI has been the same since CUDA 8, so a sandbox
needs no bindings, only the library (from a wheel beside torch's, or from a toolkit).
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from verifier.conventions.errors import CompileError, UnsupportedError

SOURCE_NAME: Final = "kernel.cu"
PRELUDE: Final = """\
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"""
"""What nvcc's implicit headers define and NVRTC's do not."""
_NAME_MAP: Final = "__nv_name_map"  # where NVRTC says that it looked for the kernels' names
LOG_CHARS: Final = 20_000
MORE_OPTIONS: Final[list[str]] = []
"""What who looks on adds in its own process: that lines of the source be known, say."""
_COMPILATION: Final = 6  # NVRTC_ERROR_COMPILATION: the source is to blame, and nothing else is
_VERSIONS: Final = (13, 12)
_ERROR: Final = re.compile(
    r"^(\S*?)\((\d+)\): (?:catastrophic )?error(?: #\S+)?: (.*)$", re.MULTILINE
)
_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)\s*(?:\((.*?)\))?\s*(?:\.\w+|\{)", re.DOTALL)
_PARAM: Final = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)[^,]*?(?:\[(\d+)\])?\s*(?:,|$)"
)

_FIXED_WIDTH: Final = """
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef long long intptr_t; typedef unsigned long long uintptr_t;
"""
_STANDARD: Final = f"#pragma once\nnamespace std {{ {_FIXED_WIDTH} }}\n{_FIXED_WIDTH}"
_LIMITS: Final = """#pragma once
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_EMPTY: Final = "#pragma once\n"
HEADERS: Final = {
    "stdint.h": _STANDARD,
    "cstdint": _STANDARD,
    "limits.h": _LIMITS,
    "climits": _LIMITS,
    "float.h": _LIMITS,
    "cfloat": _LIMITS,
    **dict.fromkeys(
        ("stddef.h", "cstddef", "math.h", "cmath", "stdio.h", "cstdio", "string.h", "cstring"),
        _EMPTY,
    ),
}
"""What files written for nvcc include and NVRTC, which has no system headers, has built in."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel, as PTX declares it: 'u64', 'f32', ... and its size."""

    kind: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code, and of each kernel asked for its symbol and parameters."""

    image: bytes
    symbols: dict[str, str]
    parameters: dict[str, tuple[Parameter, ...]]


def _site_folders() -> Iterator[Path]:
    for entry in sys.path:
        if entry.endswith("-packages") and Path(entry).is_dir():
            yield Path(entry)


def _toolkits() -> Iterator[Path]:
    names = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    yield from (Path(name) for name in names if name)
    yield Path("/usr/local/cuda")


def _libraries() -> Iterator[str]:
    """Where the library may lie: wheels beside torch's first, as torch itself would."""
    for version in _VERSIONS:
        file = f"libnvrtc.so.{version}"
        for site in _site_folders():
            yield from map(str, sorted((site / "nvidia").glob(f"*/lib/{file}")))
        for toolkit in _toolkits():
            yield from (str(toolkit / folder / file) for folder in ("lib64", "lib"))
        yield file


@lru_cache(maxsize=1)
def library() -> Any:
    """The library. Raises UnsupportedError where there is none."""
    for name in _libraries():
        if "/" in name and not Path(name).exists():
            continue
        try:
            _preload(Path(name).parent)
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UnsupportedError("NVRTC is not installed here, so CUDA sources cannot be compiled")


def _preload(folder: Path) -> None:
    """NVRTC opens its builtins by bare name, which no loader path of ours leads to."""
    for file in sorted(folder.glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)


@lru_cache(maxsize=1)
def include_folders() -> tuple[str, ...]:
    """Folders with cuda_fp16.h, mma.h and the like; libcu++ where a toolkit brings it."""
    folders: list[Path] = []
    for site in _site_folders():
        folders += sorted((site / "nvidia").glob("*/include"))
    folders += [toolkit / "include" for toolkit in _toolkits()]
    folders += [site / "triton/backends/nvidia/include" for site in _site_folders()]
    usable = [folder for folder in folders if (folder / "cuda_fp16.h").exists()]
    libcu = [folder / "cccl" for folder in folders if (folder / "cccl").is_dir()]
    return tuple(map(str, (*usable[:1], *libcu[:1])))


def version() -> tuple[int, int]:
    """Major and minor version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def compile_source(source: str, kernels: Sequence[str], arch: str, *, quoted: str) -> Compiled:
    """Compile for one architecture ('sm_90a'); ``kernels`` are C++ names, templates included, and
    ``quoted`` is the text whose lines errors are shown with.

    Raises CompileError with the first error and its line, UnsupportedError without NVRTC.
    """
    options = [f"--gpu-architecture={arch}", "--std=c++17", "-default-device"]
    options += [*(f"-I{folder}" for folder in include_folders()), *MORE_OPTIONS]
    with _Program(source, kernels, quoted) as program:
        program.compile(options)
        symbols = {name: program.symbol(name) for name in kernels}
        ptx = program.output("PTX").decode(errors="replace")
        declared = read_parameters(ptx)
        parameters = {name: declared.get(symbol, ()) for name, symbol in symbols.items()}
        return Compiled(program.output("CUBIN"), symbols, parameters)


class _Program:
    """One nvrtcProgram, destroyed at the end."""

    def __init__(self, source: str, kernels: Sequence[str], quoted: str) -> None:
        self._source = source
        self._quoted = quoted
        self._kernels = kernels
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> _Program:
        texts = _strings(HEADERS.values())
        names = _strings(HEADERS)
        text = self._source.encode()
        if b"\0" in text:
            raise CompileError("the source holds a null byte")
        _check(
            library().nvrtcCreateProgram(
                ctypes.byref(self._handle), text, SOURCE_NAME.encode(), len(HEADERS), texts, names
            )
        )
        for name in self._kernels:
            _check(library().nvrtcAddNameExpression(self._handle, name.encode()))
        return self

    def __exit__(self, *error: object) -> None:
        library().nvrtcDestroyProgram(ctypes.byref(self._handle))

    def compile(self, options: Sequence[str]) -> None:
        status = library().nvrtcCompileProgram(self._handle, len(options), _strings(options))
        if not status:
            return
        log = self.output("ProgramLog").decode(errors="replace")
        if status == _COMPILATION:
            raise CompileError(first_error(log, self._quoted))
        raise UnsupportedError(f"NVRTC does not work here: {log.strip() or status}")

    def symbol(self, name: str) -> str:
        lowered = ctypes.c_char_p()
        status = library().nvrtcGetLoweredName(self._handle, name.encode(), ctypes.byref(lowered))
        if status or not lowered.value:
            raise CompileError(f"there is no __global__ function '{name}' in the source")
        return lowered.value.decode()

    def output(self, what: str) -> bytes:
        """'PTX', 'CUBIN' or 'ProgramLog'."""
        size = ctypes.c_size_t()
        _check(getattr(library(), f"nvrtcGet{what}Size")(self._handle, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        _check(getattr(library(), f"nvrtcGet{what}")(self._handle, buffer))
        return buffer.raw[: size.value].rstrip(b"\0") if what != "CUBIN" else buffer.raw


def first_error(log: str, source: str) -> str:
    """'line 12: identifier "foo" is undefined: `float v = foo[i];`', from a whole log."""
    found = _ERROR.search(log)
    if found is None:
        return (log.strip() or "NVRTC gave no reason")[:LOG_CHARS]
    file, number, message = found[1], int(found[2]), found[3].strip()
    if file == _NAME_MAP:
        return f"@launch names what the source does not define: {message}"
    if file != SOURCE_NAME:
        return f"{Path(file).name}, line {number}: {message}"
    lines = source.split("\n")
    where = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number}: {message}" + (f": `{where[:160]}`" if where else "")


_SIZES: Final = {"64": 8, "32": 4, "16": 2, "8": 1}


def read_parameters(ptx: str) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of every entry in PTX, by symbol."""
    return {found[1]: tuple(_parameters(found[2] or "")) for found in _ENTRY.finditer(ptx)}


def _parameters(text: str) -> Iterator[Parameter]:
    for found in _PARAM.finditer(" ".join(text.split())):
        kind, count = found[2], int(found[3] or 1)
        width = _SIZES[re.sub(r"\D", "", kind)]
        yield Parameter(kind if not found[3] else "struct", width * count)


def _strings(texts: Any) -> Any:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _check(status: int) -> None:
    if status:
        library().nvrtcGetErrorString.restype = ctypes.c_char_p
        reason = library().nvrtcGetErrorString(status).decode()
        raise UnsupportedError(f"NVRTC does not work here: {reason}")
