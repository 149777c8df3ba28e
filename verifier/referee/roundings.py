"""What fp32 roundings on the way may do to a result: the reference, with each step a little off.

A gradient can be a small difference of large terms, whatever formula it comes from. What rounding
the inputs does to it says nothing of that; what rounding each step does, all of it. Where torch
computes well by luck, an honest kernel must not be measured by that luck.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from verifier.referee.follower import Follower
from verifier.referee.generator import Stream

_aten: Final = torch.ops.aten
SOFTMAX: Final = frozenset({_aten._softmax.default, _aten._log_softmax.default})

STEP: Final = 2.0**-22
"""Four roundings of fp32, at each step."""

# fmt: off
EXACT: Final = frozenset(
    {
        "abs", "neg", "sign", "relu", "clamp", "clamp_min", "clamp_max", "maximum", "minimum",
        "max", "min", "amax", "amin", "where", "gather", "index", "index_select", "embedding",
        "take", "cat", "stack", "clone", "copy", "_to_copy", "contiguous", "masked_fill", "sort",
        "topk", "flip", "roll", "tril", "triu", "repeat", "constant_pad_nd", "select_backward",
        "slice_backward", "threshold_backward", "value_selecting_reduction_backward", "floor",
        "ceil", "round", "trunc", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
        "new_full", "detach", "lift_fresh", "max_pool2d_with_indices"
    }
)
# fmt: on
"""Operations that round nothing: what they pick or move must stay equal to what it was."""


class Roundings(Follower):
    """While it is active, each fp64 result of arithmetic is off by ``STEP`` of itself, one way or
    the other; which, the draw decides."""

    def __init__(self, draw: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._draw = draw
        self._step = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if _is_exact(func, args):
            return result
        if func in SOFTMAX:
            return self._from_logits(
                result, args[0], args[1], log=func is _aten._log_softmax.default
            )
        if isinstance(result, tuple | list):
            return type(result)(self._rounded(one) for one in result)
        return self._rounded(result)

    def _rounded(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        return value * (1 + self._signs(value) * STEP)

    def _from_logits(self, value: Any, logits: Any, dim: int, *, log: bool) -> Any:
        """Also as exp(x - log(sum(exp(x)))) gives it, whose terms are rounded as large as they are:
        so is it made anew by who keeps that sum for the way back."""
        if value.dtype is not torch.float64 or not value.numel():
            return value
        size = logits.abs().masked_fill(~logits.isfinite(), 0.0).amax(dim, keepdim=True)
        off = self._signs(size) * size * STEP
        return self._rounded(value) + off if log else self._rounded(value) * (1 + off)

    def _signs(self, like: torch.Tensor) -> torch.Tensor:
        self._step += 1
        words = Stream(self._draw, "rounding", self._step).words(like.numel()) >> np.uint64(63)
        return torch.from_numpy(words.astype(np.float64)).reshape(like.shape) * 2 - 1


def _is_exact(func: Any, args: tuple[Any, ...]) -> bool:
    """Moves or picks values, gives a view, writes in place, or works on no tensor at all."""
    name = func._schema.name.removeprefix("aten::")
    aliases = any(one.alias_info is not None for one in func._schema.returns)
    given = any(isinstance(arg, torch.Tensor | list | tuple) for arg in args)
    return aliases or not given or name in EXACT
