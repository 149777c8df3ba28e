"""In the host, in Triton's interpreter: the language's values, made with less ado.

For each value that a program computes, the language writes down a type with a name, a shape as a
tuple of constants and the number of elements, which the compiler needs; here hardly anybody looks.
What is cut is only how often the same is made anew: each value, type and error stays what it was.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import torch
from triton.language import core
from triton.runtime import interpreter

_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)
_NESTED: Final = (tuple, interpreter.TensorDescriptor)
_WHOLE: Final = (int, float, bool, str, core.dtype, core.tensor, type(None))
"""Types whose values hold no constant to unwrap."""


def hasten() -> None:
    """For good, in this process and its children."""
    _tensors_plain()
    _blocks_once()
    core._unwrap_if_constexpr = _unwrapping(core._unwrap_if_constexpr)
    semantic = type(interpreter.interpreter_semantic)
    semantic.broadcast_impl_value = _unless_alike(semantic.broadcast_impl_value)
    semantic.cast = _unless_the_same(semantic.cast)
    _arguments_in_place(interpreter.GridExecutor)


def _tensors_plain() -> None:
    """A value gets its shape when somebody asks for it."""
    core.tensor.__init__ = _begin
    for name, read in (("shape", _shape), ("numel", _numel)):
        lazy = cached_property(read)
        lazy.__set_name__(core.tensor, name)
        setattr(core.tensor, name, lazy)


def _begin(self: Any, handle: Any, type: Any) -> None:
    self.handle, self.type, self.dtype = handle, type, type.scalar


def _sizes(value: Any) -> Sequence[int]:
    return value.type.shape.values if value.type.is_block() else ()


def _shape(self: Any) -> Any:
    return core.tuple([core.constexpr(size) for size in _sizes(self)])


def _numel(self: Any) -> Any:
    return core.constexpr(math.prod(_sizes(self)))


def _blocks_once() -> None:
    """A block of the shape of another one is of a possible shape, and of one type with its like."""
    core.block_type.with_element_ty = lambda self, scalar: _block(scalar, self.shape.values)
    builder = interpreter.InterpreterBuilder
    builder.get_block_ty = lambda self, scalar, shape: _block(scalar, shape.values)


def _block(scalar: Any, sizes: Sequence[int]) -> Any:
    """Remembered where it ends with the scalar type: a launch makes pointer types of its own."""
    known = scalar.__dict__.setdefault("_blocks", {})
    key = tuple(sizes)
    if key not in known:
        known[key] = core.block_type(scalar, list(sizes))
    return known[key]


def _unwrapping(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def unwrapped(value: Any) -> Any:
        return value if type(value) in _WHOLE else plain(value)

    return unwrapped


def _unless_alike(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Values of one shape need no broadcast."""

    def broadcast(self: Any, lhs: Any, rhs: Any) -> Any:
        return (lhs, rhs) if _sizes(lhs) == _sizes(rhs) else plain(self, lhs, rhs)

    return broadcast


def _unless_the_same(plain: Callable[..., Any]) -> Callable[..., Any]:
    def cast(self: Any, value: Any, kind: Any, rounding: Any = None) -> Any:
        return value if value.dtype is kind else plain(self, value, kind, rounding)

    return cast


def _arguments_in_place(executor: Any) -> None:
    """Tensors on the CPU need not be carried to it, nor what is written to them back: Triton does
    both with six operations of torch's for each launch, each of which is followed."""
    carry, carry_back = executor._init_args_hst, executor._restore_args_dev

    def carried(self: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        here = all(map(_lies_here, (*args, *kwargs.values())))
        return (list(args), dict(kwargs)) if here else carry(self, args, kwargs)

    def carried_back(self: Any, args: Any, hosted: Any, kwargs: Any, hosted_kwargs: Any) -> None:
        given, used = (*args, *kwargs.values()), (*hosted, *hosted_kwargs.values())
        if not all(map(operator.is_, given, used)):
            carry_back(self, args, hosted, kwargs, hosted_kwargs)

    executor._init_args_hst, executor._restore_args_dev = carried, carried_back


def _lies_here(value: Any) -> bool:
    if type(value) in _TENSORS:
        return bool(value.device.type == "cpu")
    return not hasattr(value, "data_ptr") and not isinstance(value, _NESTED)
