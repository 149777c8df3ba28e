"""The task contract: what a kernel must compute, and what it promises to its callers.

A task is a folder with ``task.json`` (this contract) and ``reference.py`` (``def
reference(*inputs)`` in plain torch, valid in float64). The reference is trusted code, the contract
is plain data. docs/task.schema.json describes the JSON, docs/contract.md explains each field.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from pathlib import Path
from typing import Any, Final

import cattrs

from verifier.expressions import Expression, ExpressionError, evaluate, names
from verifier.records import explain_structure_error, make_converter

CONTRACT_SCHEMA: Final = 1

FLOAT_DTYPES: Final = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
DIFFERENTIABLE: Final = ("float64", "float32", "float16", "bfloat16")
INTEGER_DTYPES: Final = ("int64", "int32", "int16", "int8", "uint8")
DTYPES: Final = (*FLOAT_DTYPES, *INTEGER_DTYPES, "bool", "complex64", "complex128")


MOST_ELEMENTS: Final = 1 << 48
"""No machine has room for more."""


class TaskError(ValueError):
    """The task folder is unusable; the message says which file and field, and what is wrong."""


class DomainKind(StrEnum):
    """Which values an input may hold."""

    REAL = "real"
    INDEX = "index"
    """Integers from ``low`` up to and without ``high``."""
    BOOL = "bool"
    OFFSETS = "offsets"
    """Ascending integers from 0 to ``high``, such as cu_seqlens; neighbours may be equal."""


class NanPolicy(StrEnum):
    """What happens to a NaN in an input."""

    PROPAGATE = "propagate"
    IGNORE = "ignore"
    """The reference leaves NaN out on purpose (nanmax and the like)."""
    UNDEFINED = "undefined"


class LayoutName(StrEnum):
    """Layouts that gate 7 tries."""

    TRANSPOSED = "transposed"
    STEP2 = "step2"
    OFFSET = "offset"
    EXPANDED = "expanded"
    CHANNELS_LAST = "channels_last"


class ReductionKind(StrEnum):
    """What a reduction computes along its dim, as far as gate 6 must know to probe it."""

    SUM = "sum"
    MEAN = "mean"
    DOT = "dot"
    """Sum of products of two inputs, the terms in the first, the factors in the second."""
    SUM_OF_SQUARES = "sum_of_squares"
    """A norm or variance: the terms enter squared, so they cannot cancel."""
    SOFTMAX = "softmax"
    """Sum of exponentials: equal logits give exactly 1/K."""
    SCATTER = "scatter"
    """Rows added up at the places that an index input names (last in ``inputs``)."""
    CUMULATIVE = "cumulative"


@dataclass(frozen=True, slots=True)
class Dim:
    """One symbolic size. ``candidates`` are the sizes that fuzzing draws from, ``usual`` is where
    the loose test looks, ``minimum``/``maximum``/``multiple_of`` bound what gate 4 may try."""

    candidates: tuple[int, ...]
    usual: int
    minimum: int = 0
    maximum: int = 2**31
    multiple_of: int = 1

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ValueError("candidates must not be empty")
        if self.minimum < 0:
            raise ValueError("no size is less than 0")
        for size in (*self.candidates, self.usual):
            if not self.allows(size):
                raise ValueError(f"size {size} breaks the dim's own bounds")

    def allows(self, size: int) -> bool:
        return self.minimum <= size <= self.maximum and size % self.multiple_of == 0


@dataclass(frozen=True, slots=True)
class DtypeVariable:
    """A dtype that several inputs and outputs share."""

    candidates: tuple[str, ...]
    usual: str

    def __post_init__(self) -> None:
        unknown = set(self.candidates) - set(DTYPES)
        if unknown or self.usual not in self.candidates:
            raise ValueError(f"unknown dtype {sorted(unknown)} or usual not among the candidates")


class Structure(StrEnum):
    """A pattern among the values of one input that the op may rely on."""

    SIGNS = "signs"
    """Every value is 1 or -1."""
    SIMPLEX = "simplex"
    """Positive, and along the last axis the sum is 1."""
    SYMMETRIC = "symmetric"
    """In its last two axes."""
    LOWER_TRIANGULAR = "lower_triangular"
    UPPER_TRIANGULAR = "upper_triangular"


@dataclass(frozen=True, slots=True)
class Domain:
    """Values that an input may hold. ``low`` and ``high`` are numbers, or expressions over dims.

    ``nonfinite`` and ``extreme`` say whether gates 2 and 10 may leave the ordinary range; by
    default they may where no bound is given.
    """

    kind: DomainKind = DomainKind.REAL
    low: float | str | None = None
    high: float | str | None = None
    nonfinite: bool | None = None
    extreme: bool | None = None
    structure: Structure | None = None

    @property
    def bounded(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def allows_nonfinite(self) -> bool:
        free = self.kind is DomainKind.REAL and not (self.bounded or self.structure)
        return free if self.nonfinite is None else self.nonfinite

    @property
    def allows_extreme(self) -> bool:
        free = self.kind is DomainKind.REAL and not (self.bounded or self.structure)
        return free if self.extreme is None else self.extreme


@dataclass(frozen=True, slots=True)
class Input:
    """One tensor argument; ``dtype`` is a dtype variable's name or a torch dtype name."""

    name: str
    shape: tuple[Expression, ...]
    dtype: str
    domain: Domain = field(default_factory=Domain)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One Python number (or text, or None) among the arguments."""

    name: str
    value: float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class Output:
    """One result. ``in_place_of`` names the input that holds it after the call."""

    name: str
    shape: tuple[Expression, ...]
    dtype: str
    in_place_of: str | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Pass when |kernel - golden| <= atol + rtol * |golden|, in place of the default rule."""

    atol: float
    rtol: float = 0.0


@dataclass(frozen=True, slots=True)
class Reduction:
    """A sum hidden in the op: along ``dim`` of ``inputs``, arriving in ``output``."""

    kind: ReductionKind
    dim: str
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Scaling each named input by s scales each named output by s**degree, exactly for s = 2**k."""

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ShiftInvariance:
    """Adding one constant to all of ``input`` along ``dim`` changes no output."""

    input: str
    dim: str


@dataclass(frozen=True, slots=True)
class Causality:
    """Changing ``inputs`` at positions after p of ``dim`` leaves outputs at positions up to p of
    ``output_dim`` (default: the same dim) as they are."""

    inputs: tuple[str, ...]
    dim: str
    output_dim: str | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the op declares about itself; each field decides which gates apply and how."""

    nondeterministic: bool = False
    random: bool = False
    """Draws random numbers: outputs are judged as a distribution, not value by value."""
    accumulate: str = "float32"
    allow_tf32: bool = False
    nan: NanPolicy = NanPolicy.PROPAGATE
    refused_layouts: tuple[LayoutName, ...] = ()
    library_calls: bool = False
    fixed_shape: bool = False
    flush_subnormals: bool = True
    independent: tuple[str, ...] = ()
    """Dims along which the op works row by row: permuting them permutes the outputs."""
    order_free: tuple[str, ...] = ()
    """Dims whose order does not matter to the result (keys of attention, terms of a sum)."""
    symmetric: tuple[tuple[str, str], ...] = ()
    """Pairs of inputs that may be exchanged without changing any output."""
    homogeneous: tuple[Homogeneity, ...] = ()
    shift_invariant: tuple[ShiftInvariance, ...] = ()
    causal: tuple[Causality, ...] = ()
    reductions: tuple[Reduction, ...] = ()


@dataclass(frozen=True, slots=True)
class Weight:
    """One parameter of the task's module, by its name there."""

    name: str
    shape: tuple[Expression, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Gradients:
    """What a kernel must give to autograd: the gates run once more on these gradients."""

    inputs: tuple[str, ...] = ()
    """Inputs whose gradient is asked for, all together."""
    weights: tuple[Weight, ...] = ()
    """Parameters of the module whose gradient is asked for too (convention kernelbench); the
    kernel's module has them under the same names."""
    outputs: tuple[str, ...] = ()
    """Outputs through which; by default each one of a floating-point dtype."""
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    """Per dtype, in place of the task's own."""
    nondeterministic: bool | None = None
    """Whether runs may differ (atomic sums of a weight's gradient, say); None: as forward."""
    nonfinite: bool = False
    """Whether NaN and infinities in the inputs have a gradient that every formula gives. NaN in
    an upstream gradient is always propagated, unless the op is causal or leaves NaN undefined."""
    reductions: tuple[Reduction, ...] = ()
    """Where the backward pass sums, along dims of 'upstream of <output>' and of the inputs, into
    'gradient of <input>'."""


@dataclass(frozen=True, slots=True)
class LooseTest:
    """The field's check as this task's users would run it; None takes KernelBench's figures."""

    trials: int = 5
    atol: float | None = None
    rtol: float | None = None
    fill: str = "normal"
    dims: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One assignment to time: ``weight`` is its share in the task's score."""

    name: str
    dims: Mapping[str, int]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """How both sides make their module, where kernels are modules (convention ``kernelbench``)."""

    init: tuple[Any, ...] = ()
    """Arguments of the constructor: plain values; a tuple is written {"tuple": [...]}."""
    seed: int = 42
    """torch's seed right before the module is made, on the CPU."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A whole task.json. Raises ValueError for anything inconsistent."""

    slug: str
    title: str
    category: str
    dims: Mapping[str, Dim]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    dtypes: Mapping[str, DtypeVariable] = field(default_factory=dict)
    scalars: tuple[Scalar, ...] = ()
    order: tuple[str, ...] = ()
    """Names of inputs and scalars in call order; by default the inputs, then the scalars."""
    constraints: tuple[str, ...] = ()
    """Expressions over dims that must hold, such as 'K <= N'."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    gradients: Gradients | None = None
    """The gradients that a kernel must give, if any (docs/contract.md)."""
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    loose: LooseTest = field(default_factory=LooseTest)
    workloads: tuple[Workload, ...] = ()
    convention: str = "function"
    """How kernels are called: function or kernelbench (docs/conventions.md)."""
    module: Module | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    schema: int = CONTRACT_SCHEMA

    def __post_init__(self) -> None:
        if self.schema != CONTRACT_SCHEMA:
            raise ValueError(f"schema {self.schema} is not {CONTRACT_SCHEMA}")
        _check_names(self)
        _check_shapes(self)
        _check_behaviour(self)
        _check_gradients(self)
        if (self.convention == "kernelbench") is not (self.module is not None):
            raise ValueError("convention kernelbench, and it alone, needs 'module'")
        if not self.satisfied(self.usual_dims()):
            raise ValueError("the usual dims break the contract's own constraints")

    @property
    def call_order(self) -> tuple[str, ...]:
        inputs = (item.name for item in self.inputs)
        return self.order or (*inputs, *(scalar.name for scalar in self.scalars))

    @property
    def tensors(self) -> list[Input | Output]:
        return [*self.inputs, *self.outputs]

    def input(self, name: str) -> Input:
        return next(item for item in self.inputs if item.name == name)

    def usual_dims(self) -> dict[str, int]:
        return {name: dim.usual for name, dim in self.dims.items()}

    def usual_dtypes(self) -> dict[str, str]:
        return {name: variable.usual for name, variable in self.dtypes.items()}

    def satisfied(self, dims: Mapping[str, int]) -> bool:
        """Whether every constraint holds under this assignment."""
        return all(evaluate(text, dims) for text in self.constraints)

    def allows(self, dims: Mapping[str, int]) -> bool:
        """Whether the assignment is within every dim's bounds and meets every constraint."""
        within = all(self.dims[name].allows(size) for name, size in dims.items())
        return within and self.satisfied(dims)

    def shape(self, item: Input | Output, dims: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(evaluate(expression, dims) for expression in item.shape)

    def dtype(self, item: Input | Output, dtypes: Mapping[str, str]) -> str:
        """The torch dtype name of an input or output under an assignment of dtype variables."""
        return dtypes.get(item.dtype, item.dtype)

    def dtype_assignments(self) -> Iterator[dict[str, str]]:
        """Every combination of dtype variables, the usual one first."""
        usual = self.usual_dtypes()
        yield usual
        variables = [(name, variable.candidates) for name, variable in self.dtypes.items()]
        for values in itertools.product(*(candidates for _, candidates in variables)):
            assignment = dict(zip((name for name, _ in variables), values, strict=True))
            if assignment != usual:
                yield assignment

    def axes(self, item: Input | Output, dim: str) -> tuple[int, ...]:
        """The axes of an input or output whose size is exactly this dim."""
        return tuple(axis for axis, expression in enumerate(item.shape) if expression == dim)


def _check_names(contract: Contract) -> None:
    arguments = [item.name for item in contract.inputs]
    arguments += [scalar.name for scalar in contract.scalars]
    if len(set(arguments)) != len(arguments):
        raise ValueError("two arguments share a name")
    if contract.order and sorted(contract.order) != sorted(arguments):
        raise ValueError("order must name every input and scalar once")
    if not contract.inputs or not contract.outputs:
        raise ValueError("a task has at least one input and one output")
    known = {*contract.dtypes, *DTYPES}
    for item in contract.tensors:
        if item.dtype not in known:
            raise ValueError(f"{item.name}: unknown dtype {item.dtype!r}")


def _check_shapes(contract: Contract) -> None:
    expressions = [e for item in contract.tensors for e in item.shape]
    bounds = [b for item in contract.inputs for b in (item.domain.low, item.domain.high)]
    texts = [b for b in bounds if isinstance(b, str)]
    for expression in (*expressions, *contract.constraints, *texts):
        unknown = names(expression) - contract.dims.keys()
        if unknown:
            raise ExpressionError(f"{expression!r} names unknown dims {sorted(unknown)}")
    for sizes in _single_changes(contract):
        for item in contract.tensors:
            _check_shape(item, sizes)
    for workload in contract.workloads:
        if set(workload.dims) != set(contract.dims):
            raise ValueError(f"workload {workload.name!r} must give every dim a size")


def _single_changes(contract: Contract) -> Iterator[dict[str, int]]:
    """The usual sizes, and each candidate with the usual sizes of the other dims."""
    usual = contract.usual_dims()
    yield usual
    for name, dim in contract.dims.items():
        changed = ({**usual, name: size} for size in dim.candidates)
        yield from (sizes for sizes in changed if contract.satisfied(sizes))


def _check_shape(item: Input | Output, dims: Mapping[str, int]) -> None:
    """Raises ValueError for a shape that no tensor has."""
    shape = [evaluate(expression, dims) for expression in item.shape]
    if min(shape, default=0) < 0 or prod(shape) > MOST_ELEMENTS:
        raise ValueError(f"{item.name} cannot have the shape {shape}")


def _check_behaviour(contract: Contract) -> None:
    inputs = {item.name for item in contract.inputs}
    outputs = {item.name for item in contract.outputs}
    behaviour = contract.behaviour
    used_inputs: set[str] = {name for pair in behaviour.symmetric for name in pair}
    used_outputs: set[str] = {reduction.output for reduction in behaviour.reductions}
    used_dims = {*behaviour.independent, *behaviour.order_free}
    for relation in behaviour.homogeneous:
        used_inputs |= relation.inputs.keys()
        used_outputs |= relation.outputs.keys()
    for shift in behaviour.shift_invariant:
        used_inputs.add(shift.input)
        used_dims.add(shift.dim)
    along: list[Causality | Reduction] = [*behaviour.causal, *behaviour.reductions]
    for relation_along in along:
        used_inputs.update(relation_along.inputs)
        used_dims.add(relation_along.dim)
    used_inputs |= {out.in_place_of for out in contract.outputs if out.in_place_of}
    for kind, used, known in (
        ("inputs", used_inputs, inputs),
        ("outputs", used_outputs, outputs),
        ("dims", used_dims, set(contract.dims)),
    ):
        if used - known:
            raise ValueError(f"behaviour names unknown {kind} {sorted(used - known)}")


def _check_gradients(contract: Contract) -> None:
    gradients = contract.gradients
    if gradients is None:
        return
    if not gradients.inputs and not gradients.weights:
        raise ValueError("gradients: name at least one input or weight")
    if gradients.weights and contract.module is None:
        raise ValueError("gradients: only modules have weights (convention kernelbench)")
    for kind, named, items in (
        ("input", gradients.inputs, contract.inputs),
        ("output", gradients.outputs, contract.outputs),
    ):
        for name in named:
            item = next((item for item in items if item.name == name), None)
            if item is None or not _is_real(contract, item):
                raise ValueError(f"gradients: {name!r} is no {kind} of a floating-point dtype")
    if not any(_is_real(contract, output) for output in contract.outputs):
        raise ValueError("gradients: no output has a floating-point dtype")
    if contract.behaviour.random or any(output.in_place_of for output in contract.outputs):
        raise ValueError("gradients of a random op, or of one that works in place, are not judged")


def _is_real(contract: Contract, item: Input | Output) -> bool:
    """Whether its usual dtype is one that has gradients."""
    return contract.dtype(item, contract.usual_dtypes()) in DIFFERENTIABLE


def _contract_converter() -> cattrs.Converter:
    """The strict converter, taught the unions that a contract's numbers need."""
    converter = make_converter()
    for union, kinds in (
        (Expression, (int, str)),
        (float | str | None, (int, float, str, type(None))),
        (float | int | bool | str | None, (int, float, bool, str, type(None))),
    ):
        converter.register_structure_hook_func(_is_union(union), _one_of(kinds))
    return converter


def _is_union(union: Any) -> Any:
    return lambda candidate: candidate == union


def _one_of(kinds: tuple[type, ...]) -> Any:
    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = ", ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{value!r} is none of {expected}")
        return value

    return structure


_converter = _contract_converter()


def parse_contract(document: Any) -> Contract:
    """The contract in a decoded task.json. Raises TaskError naming each field that does not fit."""
    try:
        return _converter.structure(document, Contract)
    except Exception as error:
        raise TaskError(explain_structure_error(error, "task.json")) from error


def contract_digest(contract_text: str, reference_text: str) -> str:
    """sha256 over the canonical contract and the reference: the identity of a task's revision."""
    canonical = json.dumps(json.loads(contract_text), sort_keys=True, separators=(",", ":"))
    joined = canonical.encode() + b"\0" + reference_text.encode()
    return hashlib.sha256(joined).hexdigest()


@dataclass(frozen=True, slots=True)
class Task:
    """A task folder, read and checked."""

    contract: Contract
    reference_source: str
    digest: str
    folder: Path


def load_task(folder: Path) -> Task:
    """Read task.json and reference.py. Raises TaskError saying what to mend."""
    texts: dict[str, str] = {}
    for name in ("task.json", "reference.py"):
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{folder / name}: {error}") from error
    try:
        document = json.loads(texts["task.json"])
    except json.JSONDecodeError as error:
        raise TaskError(f"{folder / 'task.json'}: line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise TaskError(f"{folder / 'task.json'}: nested too deeply") from error
    contract = parse_contract(document)
    digest = contract_digest(texts["task.json"], texts["reference.py"])
    return Task(contract, texts["reference.py"], digest, folder)
