"""Which convention a kernel follows, and what its host has to know: the trusted side, plain data.

The contract names the convention of its task. A file of CUDA C++ answers any task whose kernels
are functions: it is recognised by its text, for no Python file could be meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from verifier.contract import Contract, Input, Output
from verifier.conventions.names import DEFAULT_ENTRY, LIBRARY_CALLS, MODULE_ENTRY

_GLOBAL: Final = re.compile(r"\b__global__\b|^\s*//\s*@launch\b", re.MULTILINE)
_PYTHON: Final = re.compile(r"^\s*(?:import|from|def|class)\s+\w+.*(?:$|:)", re.MULTILINE)
_C_ONLY: Final = re.compile(r"^\s*(?:#\s*(?:include|define|pragma)|//|/\*)", re.MULTILINE)


class LoadOptions(TypedDict):
    """Keywords of ``Sandbox.load`` but for the source."""

    entry: str
    convention: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """How one kernel is called for one task."""

    convention: str
    entry: str
    details: Mapping[str, Any]

    def options(self) -> LoadOptions:
        """Keywords for ``Sandbox.load``."""
        return {"entry": self.entry, "convention": self.convention, "details": self.details}


def choose(contract: Contract, source: str, entry: str = DEFAULT_ENTRY) -> Choice:
    """How to call this source for this task."""
    name = convention_of(contract.convention, source)
    if name == "kernelbench" and entry == DEFAULT_ENTRY:
        entry = MODULE_ENTRY
    permitted = {LIBRARY_CALLS: True} if contract.behaviour.library_calls else {}
    return Choice(name, entry, {**details(contract, name), **permitted})


def convention_of(wanted: str, source: str) -> str:
    """The contract's convention, unless the source shows another that fits the same task.

    Tasks whose kernels are functions take a .cu file and a Solution too; so do imported ones take a
    function. A module is asked for by its task alone.
    """
    if wanted not in ("function", "flashinfer"):
        return wanted
    if is_cuda_file(source):
        return "cuda"
    return "flashinfer" if solution_text(source) else "function"


def solution_text(source: str) -> str:
    """The files of a FlashInfer-Bench Solution, one behind the other; '' for any other source."""
    if not source.lstrip().startswith("{"):
        return ""
    try:
        document = json.loads(source)
        return "\n".join(str(one["content"]) for one in document["sources"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def is_cuda_file(source: str) -> bool:
    """Whether a text is CUDA C++ rather than Python that has some in a string."""
    if not _GLOBAL.search(source):
        return False
    first_c, first_python = _C_ONLY.search(source), _PYTHON.search(source)
    if first_python is None:
        return True
    return first_c is not None and first_c.start() < first_python.start()


def details(contract: Contract, convention: str) -> Mapping[str, Any]:
    """What the host of this convention is told of the contract, as JSON."""
    match convention:
        case "kernelbench":
            module = contract.module
            return {} if module is None else {"init": list(module.init), "seed": module.seed}
        case "cuda" | "flashinfer":
            return _signature(contract)
        case _:
            return {}


def _signature(contract: Contract) -> dict[str, Any]:
    return {
        "order": list(contract.call_order),
        "inputs": [_tensor(item) for item in contract.inputs],
        "outputs": [
            {**_tensor(item), "in_place_of": item.in_place_of} for item in contract.outputs
        ],
        "scalars": [scalar.name for scalar in contract.scalars],
        "dims": list(contract.dims),
        "dtypes": contract.usual_dtypes(),
    }


def _tensor(item: Input | Output) -> dict[str, Any]:
    return {"name": item.name, "shape": list(item.shape), "dtype": item.dtype}
