"""Runs a benchmark's own test with its own reference, on the CPU, and notes each call.

A TritonBench or KernelBench-X task is a torch function and a test that calls it with inputs made on
the spot. What the test calls, with which shapes and values, is all that a prediction was ever held
to; the call's form (which arguments go by name) is kept too, for that is how predictions are
called. This runs the benchmark's code, never a kernel.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

MAX_CALLS: Final = 64
REFERENCE: Final = "_reference"


class TraceError(ValueError):
    """The test cannot be traced, or its calls are none that a contract can hold."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: ``form`` is its text with {0}, {1}, ... for the tensors, which follow in order."""

    form: str
    tensors: tuple[torch.Tensor, ...]


@dataclass(slots=True)
class Trace:
    """The calls of one function, and the function itself."""

    function: str
    call: Callable[..., Any]
    calls: list[Call] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why calls were left out."""


class _OnCpu(ast.NodeTransformer):
    """The program with every mention of a CUDA device turned into the CPU."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value.split(":")[0] == "cuda":
            return ast.copy_location(ast.Constant("cpu"), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
            return node.func.value
        return node


def on_cpu(source: str, name: str) -> types.CodeType:
    """The program, compiled to run without a GPU. Raises TraceError when it is no Python."""
    try:
        tree = ast.fix_missing_locations(_OnCpu().visit(ast.parse(source)))
        return compile(tree, name, "exec")
    except (SyntaxError, ValueError) as error:
        raise TraceError(f"{name} is no Python: {error}") from error


def run_module(source: str, name: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The names that a program leaves behind, run as a module of its own on the CPU."""
    module = types.ModuleType(name)
    module.__dict__.update(given or {}, __file__=f"/{name}.py")
    sys.modules[name] = module
    code = on_cpu(source, name)
    try:
        exec(code, module.__dict__)  # noqa: S102 - a benchmark's own reference and test
    except Exception as error:
        raise TraceError(f"{name}: {type(error).__name__}: {error}") from error
    return module.__dict__


def trace(code: str, test: str, helpers: Mapping[str, str], wanted: str) -> Trace:
    """The calls that the test makes to the reference's function.

    ``helpers`` are modules that the test imports. Where the test calls several functions of the
    reference, ``wanted`` decides. Raises TraceError saying what stands in the way.
    """
    for name, source in helpers.items():
        run_module(source, name)
    reference = run_module(code, REFERENCE)
    functions = {
        name: value
        for name, value in reference.items()
        if inspect.isfunction(value) and value.__module__ == REFERENCE
    }
    traces = {name: Trace(name, function) for name, function in functions.items()}
    given = dict(reference) | {name: _noting(one) for name, one in traces.items()}
    given = {name: value for name, value in given.items() if not name.startswith("__")}
    # Some tests import their function from a module of the task's name.
    sys.modules[wanted] = types.ModuleType(wanted)
    sys.modules[wanted].__dict__.update(given)
    stopped = _run_test(test, given)
    used = {name: one for name, one in traces.items() if one.calls}
    left_out = [problem for one in traces.values() for problem in one.problems]
    if not used and left_out:
        raise TraceError(left_out[0])
    if not used:
        raise TraceError(stopped or "its test calls no function of its reference")
    if wanted in used:
        return used[wanted]
    if len(used) > 1:
        raise TraceError(f"its test calls several functions: {', '.join(sorted(used))}")
    return next(iter(used.values()))


def _run_test(test: str, given: Mapping[str, Any]) -> str:
    """Run it; where it stops with an error the calls before that one stand, and the error is
    returned."""
    try:
        run_module(test, "_test", given)
    except TraceError as error:
        return str(error)
    return ""


def _noting(one: Trace) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            noted = call_of(one.function, args, kwargs)
        except TraceError as problem:
            one.problems.append(str(problem))
            return one.call(*args, **kwargs)
        returned = one.call(*args, **kwargs)
        if len(one.calls) < MAX_CALLS:
            one.calls.append(noted)  # and not one that the reference refuses
        return returned

    return call


def call_of(function: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """The call as text and tensors; the tensors are copies, taken before the call."""
    tensors: list[torch.Tensor] = []
    words = [_text(arg, tensors) for arg in args]
    words += [f"{name}={_text(value, tensors)}" for name, value in kwargs.items()]
    return Call(f"{function}({', '.join(words)})", tuple(tensors))


def _text(value: Any, tensors: list[torch.Tensor]) -> str:
    """An argument as Python text. Raises TraceError for what has none."""
    match value:
        case torch.Tensor():
            tensors.append(value.detach().clone())
            return "{" + str(len(tensors) - 1) + "}"
        case None | bool() | int() | str():
            return repr(value).replace("{", "{{").replace("}", "}}")
        case float():
            return repr(value) if math.isfinite(value) else f"float('{value}')"
        case list():
            return f"[{', '.join(_text(item, tensors) for item in value)}]"
        case tuple():
            inner = ", ".join(_text(item, tensors) for item in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case torch.dtype():
            raise TraceError("a dtype is among the arguments: what float64 would do is not said")
        case _:
            raise TraceError(f"a {type(value).__name__} is among the arguments")
