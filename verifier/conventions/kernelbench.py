"""The kernelbench convention: a file with ``class ModelNew(torch.nn.Module)``.

The module is made once a process, as KernelBench does: ``ModelNew(*init)`` under the seed under
which the referee made the reference's ``Model``. It is called in training mode, and without
gradients unless the call asks for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch

from verifier.conventions.calling import Kernel, Setup
from verifier.conventions.errors import EntryError
from verifier.conventions.function import entry_find, module_load
from verifier.conventions.module import construct, from_plain

FILE: Final = "kernel.py"


def load(path: Path, setup: Setup) -> Kernel:
    """The made module. Raises EntryError where there is no such class, and whatever making it
    raises."""
    kind = entry_find(module_load(path), setup.entry)
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        raise EntryError(f"'{setup.entry}' is no class of torch.nn.Module")
    init = from_plain(setup.details["init"])
    module = construct(kind, init, int(setup.details["seed"])).to(setup.device)

    def call(*args: Any) -> Any:
        with torch.set_grad_enabled("gradients" in setup.details):
            returned = module(*args)
        return tuple(returned) if type(returned) is list else returned

    call.parameters = dict(module.named_parameters())  # type: ignore[attr-defined]
    return call
