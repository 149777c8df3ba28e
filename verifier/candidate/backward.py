"""In the host: a kernel's entry point as a function that gives its outputs and their gradients.

The arguments of the derived task are the kernel's own, one upstream gradient for each output that
is differentiated, and how often to go backward (``verifier.gradients`` makes them). Both passes
run inside the stage: backward stays on the calling thread, where the dispatch mode is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch.autograd.graph import _engine_run_backward

from verifier.conventions.calling import Kernel
from verifier.conventions.errors import OutputError
from verifier.conventions.function import outputs_take

Tensors = tuple[torch.Tensor, ...]

_ADDITIONS: Final = frozenset({torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor})


def differentiated(entry: Kernel, plan: Mapping[str, Any]) -> Kernel:
    """``entry`` with a backward pass behind it, as ``plan`` (``verifier.gradients.plan``) says.

    Raises OutputError, naming it, for an output or a gradient that is not there.
    """
    inputs: list[tuple[int, str]] = [(int(place), name) for place, name in plan["inputs"]]
    through: list[tuple[int, str]] = [(int(place), name) for place, name in plan["outputs"]]
    names: list[str] = [*(name for _, name in inputs), *plan["weights"]]
    count = int(plan["arguments"])

    def call(*args: Any) -> Tensors:
        own, upstream, passes = args[:count], args[count:-1], args[-1]
        leaves = [own[place].requires_grad_() for place, _ in inputs]
        leaves += _weights(entry, plan["weights"])
        with torch.enable_grad():
            outputs = outputs_take(entry(*own))
        ends = _ends(outputs, through, int(plan["results"]))
        with torch.autograd.set_multithreading_enabled(False):
            grads = _gradients(ends, leaves, upstream, again=passes > 1)
        missing = [name for grad, name in zip(grads, names, strict=True) if grad is None]
        if missing:
            raise OutputError(f"the gradient of {missing[0]} is None")
        return (*(output.detach() for output in outputs), *grads)

    return call


def _weights(entry: Kernel, names: Sequence[str]) -> list[torch.Tensor]:
    """Parameters of the kernel's module."""
    there: Mapping[str, torch.Tensor] = getattr(entry, "parameters", {}) if names else {}
    missing = [name for name in names if name not in there]
    if missing:
        raise OutputError(f"no parameter {missing[0]}: its module has {', '.join(there) or 'none'}")
    return [there[name] for name in names]


def _ends(outputs: Tensors, through: Sequence[tuple[int, str]], results: int) -> list[torch.Tensor]:
    """The outputs to go backward from."""
    if len(outputs) != results:
        raise OutputError(f"{len(outputs)} outputs, the contract has {results}")
    for place, name in through:
        if not outputs[place].requires_grad:
            raise OutputError(f"{name} does not require grad, so nothing can be differentiated")
    return [outputs[place] for place, _ in through]


def _gradients(
    ends: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    upstream: Sequence[torch.Tensor],
    *,
    again: bool,
) -> Sequence[Any]:
    """The gradients; with ``again`` those of a second pass over the kept graph, unless the kernel
    refuses one, as it may where it has let its memory go, or a graph that is kept at all, as what
    torch.compile has made does."""
    if not again:
        return torch.autograd.grad(ends, leaves, upstream, allow_unused=True)
    try:
        first = torch.autograd.grad(ends, leaves, upstream, retain_graph=True, allow_unused=True)
    except Exception:  # noqa: BLE001 - whatever it raises, it refuses
        return torch.autograd.grad(ends, leaves, upstream, allow_unused=True)
    try:
        return torch.autograd.grad(ends, leaves, upstream, allow_unused=True)
    except Exception:  # noqa: BLE001 - whatever it raises, it refuses
        return first


_OURS: Final = (
    _engine_run_backward.__code__,
    torch.autograd.grad.__code__,
    _gradients.__code__,
)
"""The frames below an operation of the engine's own, innermost first."""

_BETWEEN: Final = (
    str(Path(__file__).with_name("staging.py")),
    str(Path(torch.__file__).parent) + os.sep,
)
"""Where the frames above those may come from: the stage, and torch's wrapping of a dispatch mode.
A kernel's own code never does."""


def is_accumulation(func: Any) -> bool:
    """Whether autograd itself adds up what several uses of one tensor contribute to its gradient,
    asked in ``__torch_dispatch__``: no code of the kernel's lies between us and the engine."""
    if func not in _ADDITIONS:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _OURS[0]:
        if not frame.f_code.co_filename.startswith(_BETWEEN):
            return False
        frame = frame.f_back
    return _are_ours(frame)


def _are_ours(frame: FrameType | None) -> bool:
    for code in _OURS:
        if frame is None or frame.f_code is not code:
            return False
        frame = frame.f_back
    return True
