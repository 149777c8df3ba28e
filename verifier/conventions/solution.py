"""The flashinfer convention: the source is a FlashInfer-Bench Solution, a JSON document of files.

Its files are laid into the scratch folder, its entry point is called with the inputs and, where it
asks for that (``destination_passing_style``), with outputs that we allocate behind them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from verifier.conventions.calling import Kernel, Setup
from verifier.conventions.cuda import bind_dims, bind_dtypes
from verifier.conventions.errors import EntryError, UnsupportedError
from verifier.conventions.function import entry_find, module_load
from verifier.expressions import evaluate

FILE: Final = "solution.json"
PYTHON: Final = ("python", "triton")
MAX_FILES: Final = 256


def load(path: Path, setup: Setup) -> Kernel:
    """The entry point. Raises EntryError for a document that is no Solution, UnsupportedError for a
    language that needs a builder of FlashInfer-Bench's own."""
    document = _document(path)
    spec = document["spec"]
    if spec.get("language") not in PYTHON:
        raise UnsupportedError(f"solutions in {spec.get('language')} cannot be built here")
    folder = path.parent / "solution"
    _lay_out(document["sources"], folder)
    file, _, symbol = str(spec.get("entry_point", "")).partition("::")
    if not (folder / file).is_file():
        raise EntryError(f"entry point {spec.get('entry_point')!r} names none of the sources")
    sys.path.insert(0, str(folder))
    entry = entry_find(module_load(folder / file), symbol)
    if spec.get("destination_passing_style", True):
        return _passing(entry, setup)
    return lambda *args: _tuple(entry(*args))


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise EntryError(f"the source is no JSON: {error}") from None
    whole = isinstance(document, dict) and isinstance(document.get("spec"), dict)
    if not whole or not isinstance(document.get("sources"), list):
        raise EntryError("the source is no Solution: it has no 'spec' and 'sources'")
    found: dict[str, Any] = document
    return found


def _lay_out(sources: list[Any], folder: Path) -> None:
    if len(sources) > MAX_FILES:
        raise EntryError(f"{len(sources)} source files; {MAX_FILES} are allowed")
    for one in sources:
        file, text = (one.get(key) for key in ("path", "content")) if type(one) is dict else (0, 0)
        if not isinstance(file, str) or not isinstance(text, str):
            raise EntryError("a source file has no path or no content")
        target = (folder / file).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise EntryError(f"a source file lies outside: {file}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def _tuple(returned: Any) -> Any:
    return tuple(returned) if type(returned) is list else returned


def _passing(entry: Kernel, setup: Setup) -> Kernel:
    """Outputs behind the inputs, as the kernel's last arguments."""
    signature: Mapping[str, Any] = setup.details

    def call(*args: Any) -> tuple[torch.Tensor, ...]:
        values = dict(zip(signature["order"], args, strict=True))
        sizes, dtypes = bind_dims(signature, values), bind_dtypes(signature, values)
        outputs = tuple(
            torch.empty(
                [evaluate(expression, sizes) for expression in out["shape"]],
                dtype=getattr(torch, dtypes.get(out["dtype"], out["dtype"])),
                device=setup.device,
            )
            for out in signature["outputs"]
        )
        entry(*args, *outputs)
        return outputs

    return call
