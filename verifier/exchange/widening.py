"""A reference that casts to float32 for accuracy, computed in float64 where its inputs are.

References of FlashInfer-Bench upcast to float32 inside and cast back at their end. On float64
inputs, from which the golden truth is computed, both would throw away what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

_CASTS: Final = frozenset(("float", "half", "bfloat16", "double"))


class _Wide(TorchFunctionMode):
    """Every cast to a floating dtype, and every new floating tensor, is float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given: Mapping[str, Any] = {key: _wide(value) for key, value in (kwargs or {}).items()}
        if getattr(func, "__name__", "") in _CASTS and args:
            return args[0].to(torch.float64)
        return func(*map(_wide, args), **given)


def _wide(value: Any) -> Any:
    floating = isinstance(value, torch.dtype) and value.is_floating_point
    return torch.float64 if floating else value


def widened(run: Callable[..., Any]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """``run`` as a reference: a tuple of tensors, in float64 where an input is."""

    def reference(*inputs: Any) -> tuple[torch.Tensor, ...]:
        wide = any(isinstance(v, torch.Tensor) and v.dtype is torch.float64 for v in inputs)
        if wide:
            with _Wide():
                result = run(*inputs)
        else:
            result = run(*inputs)
        values = result.values() if isinstance(result, Mapping) else result
        return tuple(values) if isinstance(result, tuple | list | Mapping) else (result,)

    return reference
