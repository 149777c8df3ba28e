"""The reference of an imported KernelBench problem: its ``Model`` as a plain function.

Generated reference.py files call ``module_reference``. They are trusted like every reference; so is
the problem in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from verifier.conventions.module import construct


def module_reference(
    model: Callable[..., torch.nn.Module], init: Callable[[], Sequence[Any]], seed: int
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """A function of the forward inputs, pure though the module may not be.

    The module is made in float32 on the CPU under ``seed`` and then follows the inputs: their
    device, and the dtype of the first floating one (so golden, in float64, uses exactly the weights
    that the kernel has). Buffers that a call changes, such as running means, are put back.
    """
    made: dict[tuple[torch.device, torch.dtype], torch.nn.Module] = {}

    def fitting(inputs: Sequence[Any]) -> torch.nn.Module:
        key = _device(inputs), _dtype(inputs)
        if key not in made:
            module = construct(model, _arguments(init, seed), seed)
            made[key] = module.to(device=key[0], dtype=key[1])
        return made[key]

    def reference(*inputs: Any) -> tuple[torch.Tensor, ...]:
        module = fitting(inputs)
        with _buffers_kept(module):
            result = module(*inputs)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    def parameters(inputs: Sequence[Any]) -> dict[str, torch.Tensor]:
        """The weights that a call with these inputs uses, by name: for their gradients."""
        return dict(fitting(inputs).named_parameters())

    reference.parameters = parameters  # type: ignore[attr-defined]
    return reference


def _arguments(init: Callable[[], Sequence[Any]], seed: int) -> list[Any]:
    """The constructor's arguments, drawn under the seed as KernelBench does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return list(init())


def _tensors(inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in inputs if isinstance(value, torch.Tensor)]


def _device(inputs: Sequence[Any]) -> torch.device:
    return next((tensor.device for tensor in _tensors(inputs)), torch.device("cpu"))


def _dtype(inputs: Sequence[Any]) -> torch.dtype:
    floats = (tensor.dtype for tensor in _tensors(inputs) if tensor.is_floating_point())
    return next(floats, torch.float32)


@contextmanager
def _buffers_kept(module: torch.nn.Module) -> Iterator[None]:
    kept = {name: buffer.clone() for name, buffer in module.named_buffers()}
    try:
        yield
    finally:
        for name, buffer in module.named_buffers():
            if name in kept:
                buffer.copy_(kept[name])
