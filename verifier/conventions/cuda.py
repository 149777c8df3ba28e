"""The cuda convention: a .cu file whose header says how its kernels are launched.

Outputs and temps are allocated here, arguments are bound by name, and NVRTC compiles for the device
that is there. Where there is none the file is compiled for Hopper and never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

import torch

from verifier.conventions import driver, nvrtc
from verifier.conventions.calling import Grid, Kernel, Setup
from verifier.conventions.errors import EntryError, UnsupportedError
from verifier.conventions.header import Header, LaunchLine, read_header
from verifier.expressions import Expression, ExpressionError, evaluate

FILE: Final = "kernel.cu"
NO_DEVICE_ARCH: Final = "sm_90a"
ONLY_COMPILED: Final = "compiled only: there is no GPU here to run it on"

C_TYPES: Final = {
    "float64": "double", "float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16",
    "float8_e4m3fn": "__nv_fp8_e4m3", "float8_e5m2": "__nv_fp8_e5m2",
    "int64": "long long", "int32": "int", "int16": "short", "int8": "signed char",
    "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip
"""What a dtype variable of the contract is an alias of; no macro, which would break headers."""
_NEEDS: Final = {
    "float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h",
    "float8_e4m3fn": "cuda_fp8.h", "float8_e5m2": "cuda_fp8.h",
}  # fmt: skip

_POINTER_NBYTES: Final = 8

Dtypes = dict[str, str]
Values = dict[str, Any]


class RefusedDtypeError(TypeError):
    """The file says that it does not take this dtype."""


def load(path: Path, setup: Setup) -> Kernel:
    """Compile for the usual dtypes. Raises EntryError for a header that does not fit, CompileError
    with the first error and its line, UnsupportedError where nothing can compile."""
    source = _text(path)
    program = _Program(source, read_header(source), setup)
    program.compiled(dict(setup.details["dtypes"]))
    return program.call


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise EntryError(f"the source is not UTF-8: {error.reason} at byte {error.start}") from None


class _Program:
    """One source with what it has been compiled to so far."""

    def __init__(self, source: str, header: Header, setup: Setup) -> None:
        self._source = source
        self._header = header
        self._setup = setup
        self._signature = setup.details
        self._compiled: dict[tuple[tuple[str, str], ...], nvrtc.Compiled] = {}
        self._functions: dict[tuple[bytes, str], driver.Function] = {}
        _check_names(header, self._signature)

    def compiled(self, dtypes: Dtypes) -> nvrtc.Compiled:
        """Machine code for an assignment of the contract's dtype variables."""
        key = tuple(sorted(dtypes.items()))
        if key not in self._compiled:
            self._compiled[key] = self._compile(dtypes)
        return self._compiled[key]

    def _compile(self, dtypes: Dtypes) -> nvrtc.Compiled:
        includes = sorted({_NEEDS[name] for name in dtypes.values() if name in _NEEDS})
        lines = [nvrtc.PRELUDE, *(f"#include <{name}>" for name in includes)]
        lines += [f"using {name} = {C_TYPES[dtype]};" for name, dtype in dtypes.items()]
        text = "\n".join([*lines, "#line 1", self._source])
        kernels = list(dict.fromkeys(line.kernel for line in self._header.launches))
        done = nvrtc.compile_source(text, kernels, self._arch(), quoted=self._source)
        for line in self._header.launches:
            taken, given = len(done.parameters[line.kernel]), len(line.args)
            if taken != given:
                raise EntryError(f"'{line.kernel}' takes {taken} parameters, @launch gives {given}")
            self._check_kinds(line, done.parameters[line.kernel])
        return done

    def _check_kinds(self, line: LaunchLine, parameters: Sequence[nvrtc.Parameter]) -> None:
        """EntryError for a tensor where a number is taken, or the other way round, if PTX shows."""
        for arg, parameter in zip(line.args, parameters, strict=True):
            if parameter.kind == "struct":
                raise EntryError(f"'{line.kernel}' takes '{arg}' by value as a struct")
            if arg in self._tensors and parameter.nbytes != _POINTER_NBYTES:
                raise EntryError(f"'{line.kernel}' takes '{arg}' as a {parameter.kind}: no pointer")

    @property
    def _tensors(self) -> set[str]:
        items = (*self._signature["inputs"], *self._signature["outputs"])
        return {item["name"] for item in items} | {temp.name for temp in self._header.temps}

    def _arch(self) -> str:
        if self._setup.device.type != "cuda":
            return NO_DEVICE_ARCH
        major, minor = torch.cuda.get_device_capability(self._setup.device)
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def call(self, *args: Any) -> tuple[torch.Tensor, ...]:
        """One call: bind, allocate, launch."""
        if self._setup.device.type != "cuda":
            raise UnsupportedError(ONLY_COMPILED)
        values: Values = dict(zip(self._signature["order"], args, strict=True))
        dims = bind_dims(self._signature, values)
        dtypes = bind_dtypes(self._signature, values)
        _check_dtypes(self._header, dtypes)
        code = self.compiled(dtypes)
        outputs = self._allocate(values, {**self._header.constants, **dims}, dtypes)
        self._launch_all(code, {**self._header.constants, **dims}, values)
        return outputs

    def _allocate(
        self, values: Values, sizes: Mapping[str, int], dtypes: Dtypes
    ) -> tuple[torch.Tensor, ...]:
        """Make inputs contiguous, add outputs and temps to the values; the outputs to return."""
        in_place = {out["in_place_of"] for out in self._signature["outputs"]} - {None}
        for item in self._signature["inputs"]:
            values[item["name"]] = _dense(values[item["name"]], item["name"] in in_place)
        made: list[torch.Tensor] = []
        for out in self._signature["outputs"]:
            source = out["in_place_of"]
            if source is not None:
                values[out["name"]] = values[source]
                continue
            dtype = dtypes.get(out["dtype"], out["dtype"])
            values[out["name"]] = self._empty(out["shape"], dtype, sizes)
            made.append(values[out["name"]])
        for temp in self._header.temps:
            values[temp.name] = self._empty(temp.shape, dtypes.get(temp.dtype, temp.dtype), sizes)
        return tuple(made) or tuple(values[out["name"]] for out in self._signature["outputs"])

    def _empty(
        self, shape: Sequence[Expression], dtype: str, sizes: Mapping[str, int]
    ) -> torch.Tensor:
        numbers = [evaluate(expression, sizes) for expression in shape]
        return torch.empty(numbers, dtype=getattr(torch, dtype), device=self._setup.device)

    def _launch_all(self, code: nvrtc.Compiled, sizes: Mapping[str, int], values: Values) -> None:
        for line in self._header.launches:
            grid, block = _three(line.grid, sizes), _three(line.block, sizes)
            if prod(grid) == 0:
                continue  # nothing to do for an empty tensor, and the driver takes no such grid
            given = [_value(arg, sizes, values) for arg in line.args]
            shared = evaluate(line.shared, sizes)
            self._launch(code, line, (grid, block, shared), given)

    def _launch(
        self,
        code: nvrtc.Compiled,
        line: LaunchLine,
        sizes: tuple[Grid, Grid, int],
        given: Sequence[Any],
    ) -> None:
        pairs = zip(given, code.parameters[line.kernel], strict=True)
        packed = [driver.to_c(value, parameter) for value, parameter in pairs]
        function = self._function(code, line.kernel)
        self._setup.launch(line.kernel, sizes[0], given, lambda: function.launch(*sizes, packed))

    def _function(self, code: nvrtc.Compiled, kernel: str) -> driver.Function:
        key = (code.image, kernel)
        if key not in self._functions:
            self._functions[key] = driver.Function(code.image, code.symbols[kernel])
        return self._functions[key]


def bind_dims(signature: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the contract's dims, read off the inputs' shapes.

    Raises UnsupportedError for a dim that no input has as an axis of its own.
    """
    found: dict[str, int] = {}
    for item in signature["inputs"]:
        for expression, size in zip(item["shape"], values[item["name"]].shape, strict=True):
            if isinstance(expression, str) and expression in signature["dims"]:
                found.setdefault(expression, size)
    missing = sorted(set(signature["dims"]) - found.keys())
    if missing:
        raise UnsupportedError(f"no input has an axis that is {missing[0]} and nothing else")
    return found


def bind_dtypes(signature: Mapping[str, Any], values: Mapping[str, Any]) -> Dtypes:
    """The contract's dtype variables, read off the inputs; the usual ones where none shows them."""
    found = dict(signature["dtypes"])
    for item in signature["inputs"]:
        if item["dtype"] in found:
            found[item["dtype"]] = str(values[item["name"]].dtype).removeprefix("torch.")
    return found


def _check_dtypes(header: Header, dtypes: Dtypes) -> None:
    for name, taken in header.dtypes.items():
        if dtypes.get(name, taken[0]) not in taken:
            raise RefusedDtypeError(f"{name} may be {', '.join(taken)} here, not {dtypes[name]}")


def _check_names(header: Header, signature: Mapping[str, Any]) -> None:
    """EntryError for a name in the header that stands for nothing."""
    sizes = dict.fromkeys((*header.constants, *signature["dims"]), 1)
    tensors = {item["name"] for item in (*signature["inputs"], *signature["outputs"])}
    values = dict.fromkeys(
        (*tensors, *signature["scalars"], *(temp.name for temp in header.temps)), None
    )
    for expression in _expressions(header):
        _known(expression, sizes)
    for line in header.launches:
        for arg in line.args:
            if arg not in values:
                _known(arg, sizes, [*values, *sizes])


def _expressions(header: Header) -> Iterator[Expression]:
    for line in header.launches:
        yield from (*line.grid, *line.block, line.shared)
    for temp in header.temps:
        yield from temp.shape


def _known(
    expression: Expression, sizes: Mapping[str, int], offered: Sequence[str] | None = None
) -> None:
    try:
        evaluate(expression, sizes)
    except ExpressionError as error:
        if "unknown dim" in str(error) or "not allowed" in str(error):
            known = ", ".join(sizes if offered is None else offered) or "nothing"
            raise EntryError(f"'{expression}' in @launch: this task has {known}") from None


def _three(sizes: Sequence[Expression], names: Mapping[str, int]) -> Grid:
    found = [evaluate(expression, names) for expression in sizes]
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _value(arg: str, sizes: Mapping[str, int], values: Mapping[str, Any]) -> Any:
    return values[arg] if arg in values else evaluate(arg, sizes)


def _dense(tensor: torch.Tensor, changed_in_place: bool) -> torch.Tensor:
    """Row-major memory, as every pointer in a .cu file is meant."""
    if tensor.is_contiguous():
        return tensor
    if changed_in_place:
        raise ValueError("an input that is changed in place must be contiguous")
    return tensor.contiguous()
