"""KernelBench's correctness test, literally: a convention of ours that follows its ``eval.py``.

Written from ScalingIntelligence/KernelBench 423217d, ``eval_kernel_against_ref`` and
``run_and_check_correctness``. What makes it differ from our loose test, which is its spirit:

- inputs are torch's own draws, from seeds that torch draws from one seed (42), and not ours;
- every input tensor is cast to the one precision of the run, indices too;
- the reference runs first, on the very tensors that the kernel gets next, and TF32 is as torch
  has it by default;
- ``torch.allclose`` works in the outputs' own dtype, so that another dtype is an error;
- all trials run, a wrong value stops none; a wrong shape and an exception stop at once.

The kernel runs in the sandbox like any other, where upstream runs it in its own process.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from verifier.contract import Contract, DomainKind, Input, Task
from verifier.expressions import evaluate
from verifier.subject import Arg, Reply, Subject

SEED: Final = 42
TRIALS: Final = 5
"""What its scripts pass; the function's own default is one trial."""

TOLERANCES: Final = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""atol and rtol alike, by the precision of the run."""


class UnfitError(ValueError):
    """KernelBench has no way to ask this task's question; the message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A task as KernelBench would hold it: the source of ``Model`` and ``get_inputs``."""

    source: str
    precision: str
    """'fp32', 'fp16' or 'bf16'"""


@dataclass(frozen=True, slots=True)
class Literal:
    """What the literal test says of one kernel."""

    accepted: bool
    detail: str


_PRECISIONS: Final = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}

_MODEL: Final = """

import torch as _torch


class Model(_torch.nn.Module):
    def forward(self, *inputs):
        return reference(*inputs)


def get_init_inputs():
    return []


def get_inputs():
    return [{inputs}]
"""

_MODEL_NEW: Final = """

import torch as _torch


class ModelNew(_torch.nn.Module):
    def forward(self, *inputs):
        return {entry}(*inputs)
"""


def problem(task: Task) -> Problem:
    """The task at its usual sizes and dtypes. Raises UnfitError where KernelBench cannot ask it."""
    contract = task.contract
    floats = [contract.dtype(item, contract.usual_dtypes()) for item in contract.inputs]
    named = [_PRECISIONS[name] for name in floats if name in _PRECISIONS]
    if not named:
        raise UnfitError(f"no input has a precision of KernelBench's ({', '.join(floats)})")
    drawn = {item.name: _draw(contract, item) for item in contract.inputs}
    drawn |= {scalar.name: repr(scalar.value) for scalar in contract.scalars}
    inputs = ", ".join(drawn[name] for name in contract.call_order)
    return Problem(task.reference_source + _MODEL.format(inputs=inputs), named[0])


def _draw(contract: Contract, item: Input) -> str:
    """The expression with which a KernelBench problem would make this input."""
    dims = contract.usual_dims()
    shape = list(contract.shape(item, dims))
    domain = item.domain
    low, high = (_number(bound, dims) for bound in (domain.low, domain.high))
    match domain.kind:
        case DomainKind.REAL if not domain.bounded:
            return f"_torch.randn({shape})"
        case DomainKind.REAL:
            first = 0.0 if low is None else low
            last = first + 1.0 if high is None else high
            return f"(_torch.rand({shape}) * {last - first} + {first})"
        case DomainKind.INDEX:
            return f"_torch.randint({int(low or 0)}, {int(2 if high is None else high)}, {shape})"
        case DomainKind.BOOL:
            return f"(_torch.rand({shape}) < 0.5)"
        case _:
            raise UnfitError(f"{item.name} holds offsets, which KernelBench has no inputs for")


def _number(bound: float | str | None, dims: dict[str, int]) -> float | None:
    return float(evaluate(bound, dims)) if isinstance(bound, str) else bound


def model_new(source: str, entry: str) -> str:
    """A kernel of the function convention as KernelBench's ``ModelNew``."""
    return source.rstrip() + "\n" + _MODEL_NEW.format(entry=entry)


def literal_test(
    posed: Problem, subject: Subject, device: torch.device, *, trials: int = TRIALS
) -> Literal:
    """The test on one subject. Raises InfrastructureError alone."""
    module = types.ModuleType("_kernelbench_problem")
    exec(compile(posed.source, "<problem>", "exec"), module.__dict__)  # noqa: S102 - our own text
    precision = next(d for d, name in _by_dtype().items() if name == posed.precision)
    model, passed, said = module.Model(), 0, ""
    for number, seed in enumerate(_trial_seeds(trials), start=1):
        inputs = list(_inputs(module.get_inputs, seed, precision, device))
        try:
            with torch.no_grad():
                expected = model(*inputs)
        except Exception as error:  # noqa: BLE001 - upstream calls that a runtime error, too
            return Literal(False, f"trial {number}: the reference raises {_words(error)}")
        outcome, stop = _trial(expected, subject.call([_to_cpu(x) for x in inputs]), precision)
        passed += not outcome
        said = said or (f"trial {number}: {outcome}" if outcome else "")
        if stop:
            break
    return Literal(passed == trials, said)


def _by_dtype() -> dict[torch.dtype, str]:
    return {getattr(torch, name): short for name, short in _PRECISIONS.items()}


def _trial_seeds(trials: int) -> list[int]:
    """The seeds of the trials, as upstream draws them from its one."""
    torch.manual_seed(SEED)
    return [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(trials)]


def _inputs(
    draw: Callable[[], Sequence[Any]], seed: int, precision: torch.dtype, device: torch.device
) -> Iterator[Any]:
    torch.manual_seed(seed)
    for value in draw():
        is_tensor = isinstance(value, torch.Tensor)
        yield value.to(dtype=precision).to(device=device) if is_tensor else value


def _to_cpu(value: Any) -> Arg:
    """The argument for the sandbox, after the reference had it: what that changed stays changed."""
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _trial(expected: Any, reply: Reply, precision: torch.dtype) -> tuple[str, bool]:
    """('' or what is wrong, whether that ends the test)."""
    if not reply.returned:
        return f"{reply.kind.value}: {reply.detail}".splitlines()[0][:200], True
    if not isinstance(expected, torch.Tensor) or len(reply.outputs) != 1:
        return "several outputs: upstream asks a tuple for its shape, which is an error", True
    want, got = expected.cpu(), reply.outputs[0]
    if want.shape != got.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}", True
    if want.dtype != got.dtype:
        return f"{got.dtype} beside {want.dtype}: allclose raises", True
    tolerance = TOLERANCES[precision]
    if not torch.allclose(want, got, atol=tolerance, rtol=tolerance):
        return f"allclose fails at {tolerance:g}", False
    return "", False


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]
