"""The function convention: a file with ``def run(*inputs)`` that returns its output or outputs.

Runs in the untrusted host. ``module_load``, ``entry_find`` and ``outputs_take`` say in plain words
what is wrong; whatever the kernel itself raises passes through.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch

from verifier.conventions.calling import Kernel, Setup
from verifier.conventions.errors import EntryError, OutputError

FILE: Final = "kernel.py"
MODULE_NAME: Final = "kernel_under_test"
_NEWLINE: Final = b"\n"
_PARAMETERS: Final = (torch.nn.Parameter,)
_SYNTAX_ERRORS: Final = (SyntaxError, IndentationError, TabError)


def load(path: Path, setup: Setup) -> Kernel:
    """The entry point of the file. Raises EntryError, or whatever the file raises."""
    return entry_find(module_load(path), setup.entry)


def module_load(path: Path) -> ModuleType:
    """Import a file as a module; Triton reads the source of its kernels back from that file.

    Raises SyntaxError, in one line that names the line of the source, also for one that is not
    UTF-8 (Python itself lets that pass in comments).
    """
    _bytes_check(path)
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _in_one_line(error) from None
    return module


def _bytes_check(path: Path) -> None:
    """SyntaxError for what is no text, before Python says less of it."""
    source = path.read_bytes()
    try:
        source.decode()
    except UnicodeDecodeError as error:
        place = _place(path, source, error.start)
        raise SyntaxError(
            f"the source is not UTF-8: {error.reason} at byte {error.start} ({place})"
        ) from None
    if (null := source.find(0)) >= 0:
        place = _place(path, source, null)
        raise SyntaxError(f"the source holds a null byte, byte {null} ({place})")


def _place(path: Path, source: bytes, position: int) -> str:
    """As Python names it: 'kernel.py, line 3'."""
    return f"{path.name}, line {source.count(_NEWLINE, 0, position) + 1}"


def _in_one_line(error: SyntaxError) -> SyntaxError:
    """The same error with its place behind its message: printed whole, an error of syntax begins
    with the file, and whoever shows the first line of a reason would not show the error."""
    kind = type(error) if type(error) in _SYNTAX_ERRORS else SyntaxError
    return kind(str(error))


def entry_find(module: ModuleType, entry: str) -> Callable[..., Any]:
    """The entry point. Raises EntryError with what there is instead."""
    found = getattr(module, entry, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    if found is not None:
        raise EntryError(f"'{entry}' is a {type(found).__name__}, not callable")
    names = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
    raise EntryError(
        f"no '{entry}' in the source; it defines: {', '.join(names[:20]) or 'nothing'}"
    )


def outputs_take(returned: Any) -> tuple[torch.Tensor, ...]:
    """The returned tensors as a tuple. Raises OutputError naming what it is instead."""
    if type(returned) is not tuple:
        return (_tensor(returned, "it returned"),)
    if not returned:
        raise OutputError("it returned an empty tuple")
    return tuple(_tensor(item, f"output {i} is") for i, item in enumerate(returned))


def _tensor(value: Any, prefix: str) -> torch.Tensor:
    problem = _problem(value)
    if problem:
        raise OutputError(f"{prefix} {problem}")
    return value  # type: ignore[no-any-return]


def _problem(value: Any) -> str:
    kind = type(value)
    if value is None:
        return "None"
    if not isinstance(value, torch.Tensor):
        return f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")
    if kind is not torch.Tensor and kind not in _PARAMETERS:
        return f"a tensor subclass, {kind.__module__}.{kind.__qualname__}"
    return _storage_problem(value)


def _storage_problem(value: torch.Tensor) -> str:
    if value.layout is not torch.strided:
        return f"a tensor with layout {value.layout}"
    if value.is_quantized:
        return "a quantized tensor"
    if value.is_neg() or value.is_conj():
        return "a tensor whose negation or conjugation is still to be done"
    if value.device.type == "meta":
        return "a tensor on the meta device, without storage"
    if value.numel() and value.untyped_storage().nbytes() == 0:
        return "a tensor without storage"
    return ""
