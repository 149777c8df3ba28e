"""Making an nn.Module the same way on both sides: under one seed, on the CPU, with grad off.

The referee makes the problem's ``Model`` with it, the untrusted host the kernel's ``ModelNew``.
Whoever draws the same parameters in the same order gets the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

TUPLE = "tuple"
"""Key of the object that stands for a tuple in JSON, which has none."""


def construct(
    make: Callable[..., torch.nn.Module], init: Sequence[Any], seed: int
) -> torch.nn.Module:
    """``make(*init)`` with torch's generator at ``seed``; afterwards it is where it was."""
    devices = [0] if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        torch.manual_seed(seed)
        return make(*init)


def state_share(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    """Copy the values of ``state`` into parameters and buffers of the same name and shape; the
    names that were taken. What has no namesake keeps what the seed gave it."""
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    taken = [name for name in own if name in state and own[name].shape == state[name].shape]
    with torch.no_grad():
        for name in taken:
            own[name].copy_(state[name])
    return tuple(taken)


def to_plain(value: Any) -> Any:
    """A constructor argument as JSON. Raises ValueError for what is no plain value."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {TUPLE: [to_plain(item) for item in value]}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    raise ValueError(f"a {type(value).__name__} is no plain value")


def from_plain(value: Any) -> Any:
    """The inverse of ``to_plain``."""
    if isinstance(value, Mapping):
        return tuple(from_plain(item) for item in value[TUPLE])
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return value
