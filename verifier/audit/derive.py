"""A task from a benchmark's own reference and test, found by experiment.

``python -m verifier.audit.derive`` reads definitions as JSON lines and answers one line each. The
contract promises what the test shows and no more: its dtypes, its ranges of values where the
reference needs them, and as free dims those sizes alone that the reference takes at every value
tried, with output sizes that an expression describes. All else is fixed or refused with a reason.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from verifier.audit.corpus import CorpusTask
from verifier.audit.deriving import Definition, Derived, Kind
from verifier.audit.tracing import Call, Trace, TraceError, trace
from verifier.contract import TaskError, load_task
from verifier.pipeline import Request, build_bench
from verifier.records import DeviceMode, RecordError, from_json, to_json
from verifier.source import read_source

TASK_S: Final = 60.0
"""So long one definition may take."""

MAX_ELEMENTS: Final = 1 << 24
MAX_RANK: Final = 6
EXTRA_SIZES: Final = (1, 2, 7, 16, 33, 100, 129, 257)
"""Candidates of a free dim beside the test's own sizes."""

LIBRARIES: Final = frozenset({"torch", "math", "numpy", "triton", "typing"})

ENTRY: Final = "audited"
"""Name of the function that calls the prediction the way that the test does."""

NOT_UNIQUE: Final = frozenset({"eig", "svd", "qr", "lu", "ldl_factor", "rand"})
"""Functions whose answer is one of several right ones, or random."""


# --- one definition


def derive(definition: Definition) -> Derived:
    """The task of one definition. Raises TraceError or TaskError saying why there is none."""
    if definition.kind is Kind.MODULE:
        return _module(definition)
    if definition.stem in NOT_UNIQUE:
        raise TraceError("its answer is not unique, or is random")
    found = trace(definition.code, definition.test, definition.helpers, definition.stem)
    problems: list[str] = []
    for form, calls in _variants(found):
        try:
            return _derive(definition, found, form, calls)
        except (TraceError, TaskError) as error:
            problems.append(str(error))
    raise TraceError(problems[0] if problems else "no call of its test has a tensor among its args")


def _module(definition: Definition) -> Derived:
    """A KernelBench problem at its own sizes. Raises TraceError where they are too great."""
    exchange = importlib.import_module("verifier.exchange.kernelbench")
    try:
        own = exchange.import_problem(definition.code.encode(), definition.name)[0]
    except ValueError as error:
        raise TraceError(str(error)) from error
    if own.elements > MAX_ELEMENTS:
        raise TraceError(f"a tensor of more than {MAX_ELEMENTS:,} elements is among its tensors")
    contract = json.dumps({**own.contract, "category": definition.category})
    return Derived(definition.name, CorpusTask(definition.name, contract, own.reference))


def _variants(found: Trace) -> list[tuple[str, list[Call]]]:
    """The calls by form and by rank and dtype of their tensors, in the order of the test."""
    groups: dict[tuple[Any, ...], list[Call]] = {}
    for call in found.calls:
        if call.tensors:
            kinds = tuple((t.dim(), t.dtype) for t in call.tensors)
            groups.setdefault((call.form, kinds), []).append(call)
    return [(key[0], calls) for key, calls in groups.items()]


def _derive(definition: Definition, found: Trace, form: str, calls: list[Call]) -> Derived:
    largest = max(calls, key=lambda call: sum(t.numel() for t in call.tensors))
    lab = Lab(found, form, largest.tensors)
    lab.check_ordinary()
    axes = Axes.tied([call.tensors for call in calls], largest.tensors)
    free = lab.free(axes) if definition.shapes_are_free else frozenset()
    outputs, free = lab.outputs(axes, free, lab.small(axes, free))
    document = _document(definition, lab, axes, free, outputs, calls)
    task = CorpusTask(definition.name, json.dumps(document), _reference(definition, form, lab))
    _try_out(task)
    return Derived(definition.name, task, found.function, ENTRY, _shim(definition, form, lab))


# --- experiments


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes of the inputs share a size. ``names[i][j]`` is the class of axis j of input i, or
    '' for an axis of size 1 throughout, which broadcasts and stays as it is."""

    names: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, int]
    seen: Mapping[str, tuple[int, ...]]

    @classmethod
    def tied(cls, calls: Sequence[Sequence[torch.Tensor]], largest: Sequence[torch.Tensor]) -> Axes:
        """Axes are tied where their sizes agree in every call: that asks for no more than the
        test does, for whoever takes unequal sizes takes equal ones too."""
        by_sizes: dict[tuple[int, ...], str] = {}
        names = [
            tuple(
                _name(by_sizes, tuple(int(call[i].shape[j]) for call in calls))
                for j in range(tensor.dim())
            )
            for i, tensor in enumerate(largest)
        ]
        sizes = {
            name: int(tensor.shape[j])
            for tensor, row in zip(largest, names, strict=True)
            for j, name in enumerate(row)
            if name
        }
        seen = {name: tuple(sorted(set(key))) for key, name in by_sizes.items() if name}
        return cls(tuple(names), sizes, seen)

    def shape(self, index: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(sizes[name] if name else 1 for name in self.names[index])


def _name(known: dict[tuple[int, ...], str], sizes: tuple[int, ...]) -> str:
    if set(sizes) == {1}:
        return ""
    return known.setdefault(sizes, f"D{len(known)}")


@dataclass(slots=True)
class Lab:
    """The reference, and inputs like those of the largest call. ``bounds`` of an input are None
    where ordinary values of any size do."""

    found: Trace
    form: str
    tensors: tuple[torch.Tensor, ...]
    bounds: list[tuple[float, float] | None] = field(default_factory=list)

    def call(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The reference's outputs. Raises TraceError for what is no tensor; lets errors pass."""
        names = {f"a{i}": tensor for i, tensor in enumerate(tensors)}
        text = self.form.format(*names)
        scope = {**names, self.found.function: self.found.call}
        with torch.no_grad():
            returned = eval(text, scope)  # noqa: S307 - the text is our own, from the traced call
        return tensors_of(returned)

    def make(self, axes: Axes, sizes: Mapping[str, int], seed: int = 0) -> list[torch.Tensor]:
        """Inputs of these sizes, drawn as the contract will have them drawn."""
        generator = torch.Generator().manual_seed(seed)
        return [
            _draw(tensor, axes.shape(i, sizes), self.bounds[i], generator)
            for i, tensor in enumerate(self.tensors)
        ]

    def check_ordinary(self) -> None:
        """Find out which values the reference takes, and refuse what no contract can describe."""
        _check_tensors(self.tensors)
        own = self.call(_copies(self.tensors))
        _check_tensors(own)
        self._check_pure(own)
        self.bounds = [None if t.is_floating_point() else _range(t) for t in self.tensors]
        if not self._takes_drawn(own):
            self.bounds = [_range(t) if _bounded(t) else None for t in self.tensors]
            if not self._takes_drawn(own):
                raise TraceError("it needs inputs of a structure that a range does not describe")
        self._check_double(own)

    def _check_pure(self, own: Sequence[torch.Tensor]) -> None:
        before = _copies(self.tensors)
        torch.manual_seed(1)
        again = self.call(before)
        if not _same(own, again):
            raise TraceError("its answer is random")
        if not _same(before, self.tensors):
            raise TraceError("it works in place")

    def _takes_drawn(self, own: Sequence[torch.Tensor]) -> bool:
        """Whether drawn values give a finite answer wherever the test's own do."""
        generator = torch.Generator().manual_seed(7)
        drawn = [
            _draw(tensor, tensor.shape, bounds, generator)
            for tensor, bounds in zip(self.tensors, self.bounds, strict=True)
        ]
        try:
            outputs = self.call(drawn)
        except TraceError:
            raise
        except Exception:  # noqa: BLE001 - whatever the reference says of such inputs
            return False
        finite = all(bool(out.isfinite().all()) for out in outputs)
        return finite or not all(bool(out.isfinite().all()) for out in own)

    def _check_double(self, own: Sequence[torch.Tensor]) -> None:
        """The reference must follow its inputs to float64, or there is no golden answer."""
        raised = [t.double() if t.is_floating_point() else t.clone() for t in self.tensors]
        if not any(t.is_floating_point() for t in self.tensors):
            return
        try:
            outputs = self.call(raised)
        except Exception as error:
            raise TraceError(f"its reference refuses float64: {error}") from error
        for one, other in zip(own, outputs, strict=True):
            if one.is_floating_point() and other.dtype is not torch.float64:
                raise TraceError("its reference does not follow its inputs to float64")

    # --- sizes

    def free(self, axes: Axes) -> frozenset[str]:
        """The dims that may change: alone, each at several sizes, and then all together."""
        alone = {name for name, size in axes.sizes.items() if self._takes(axes, _moves(name, size))}
        together = [
            {
                name: size + 1 + i
                for i, (name, size) in enumerate(axes.sizes.items())
                if name in alone
            },
            {name: 2 * size + 1 for name, size in axes.sizes.items() if name in alone},
        ]
        return frozenset(alone) if alone and self._takes(axes, together) else frozenset()

    def small(self, axes: Axes, free: frozenset[str]) -> frozenset[str]:
        """The free dims that may go down to 1; the others stay at the test's sizes or above."""
        return frozenset(n for n in free if self._takes(axes, [{n: 1}, {n: 2}]))

    def _takes(self, axes: Axes, moves: Iterable[Mapping[str, int]]) -> bool:
        for move in moves:
            try:
                self.call(self.make(axes, {**axes.sizes, **move}))
            except Exception:  # noqa: BLE001 - any refusal means that the size is part of the op
                return False
        return True

    def outputs(
        self, axes: Axes, free: frozenset[str], small: frozenset[str]
    ) -> tuple[list[Out], frozenset[str]]:
        """The outputs' shapes as expressions over the free dims; without free dims where some size
        follows no simple rule."""
        trials = [axes.sizes]
        for step, name in enumerate(sorted(free)):
            trials += [{**axes.sizes, **move} for move in _moves(name, axes.sizes[name])]
            trials.append({**axes.sizes, **{n: axes.sizes[n] + 3 + step for n in free}})
        trials += [{**axes.sizes, name: 1} for name in sorted(free & small)]
        answers = [(sizes, self.call(self.make(axes, sizes))) for sizes in trials]
        outs = [_out(i, answers, free) for i in range(len(answers[0][1]))]
        if free and any(out is None for out in outs):
            return self.outputs(axes, frozenset(), small)
        return [out for out in outs if out is not None], free


def _moves(name: str, size: int) -> list[dict[str, int]]:
    return [{name: other} for other in (size + 1, 2 * size + 1, size + 37)]


@dataclass(frozen=True, slots=True)
class Out:
    """One output: sizes or expressions, and its dtype."""

    shape: tuple[int | str, ...]
    dtype: str


Answers = list[tuple[Mapping[str, int], tuple[torch.Tensor, ...]]]


def _out(index: int, answers: Answers, free: frozenset[str]) -> Out | None:
    first = answers[0][1][index]
    if any(answer[index].dim() != first.dim() for _, answer in answers):
        return None
    shape = [
        _expression([(sizes, int(answer[index].shape[axis])) for sizes, answer in answers], free)
        for axis in range(first.dim())
    ]
    known = [size for size in shape if size is not None]
    return Out(tuple(known), dtype_name(first)) if len(known) == len(shape) else None


def _expression(
    seen: list[tuple[Mapping[str, int], int]], free: frozenset[str]
) -> int | str | None:
    """The first simple rule that gives every size seen."""
    base_sizes, base = seen[0]
    if all(size == base for _, size in seen):
        return base
    for text, rule in _rules(base_sizes, base, sorted(free)):
        if all(rule(sizes) == size for sizes, size in seen):
            return text
    return None


def _rules(base: Mapping[str, int], size: int, names: list[str]) -> Iterator[tuple[str, Any]]:
    for n in names:
        yield n, lambda s, n=n: s[n]
        shift = size - base[n]
        yield f"{n} + {shift}", lambda s, n=n, shift=shift: s[n] + shift
        for k in range(2, 17):
            yield f"{k} * {n}", lambda s, n=n, k=k: k * s[n]
        for stride, back in itertools.product(range(1, 5), range(-4, 17)):
            text = (
                f"({n} - {back}) // {stride} + 1"
                if back >= 0
                else f"({n} + {-back}) // {stride} + 1"
            )
            yield text, lambda s, n=n, k=back, d=stride: (s[n] - k) // d + 1
    for one, other in itertools.combinations_with_replacement(names, 2):
        yield f"{one} * {other}", lambda s, a=one, b=other: s[a] * s[b]
        yield f"{one} + {other}", lambda s, a=one, b=other: s[a] + s[b]


# --- tensors


def tensors_of(returned: Any) -> tuple[torch.Tensor, ...]:
    """The outputs as a tuple. Raises TraceError for what no contract can hold."""
    items = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    for item in items:
        if not isinstance(item, torch.Tensor):
            raise TraceError(f"its reference returns a {type(item).__name__}")
    if not items:
        raise TraceError("its reference returns nothing")
    return items


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _check_tensors(tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise TraceError("a sparse or quantized tensor is among its inputs or outputs")
        if tensor.numel() > MAX_ELEMENTS or tensor.dim() > MAX_RANK:
            raise TraceError(f"a tensor of {tensor.numel():,} elements is among its arguments")


def _copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in tensors]


def _same(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(left, right, strict=True)
    )


def _range(tensor: torch.Tensor) -> tuple[float, float] | None:
    if tensor.dtype is torch.bool or tensor.is_complex() or tensor.numel() == 0:
        return None
    finite = tensor[tensor.isfinite()] if tensor.is_floating_point() else tensor
    return (float(finite.min()), float(finite.max())) if finite.numel() else None


def _bounded(tensor: torch.Tensor) -> bool:
    bounds = _range(tensor)
    return bounds is not None and bounds[0] < bounds[1]


def _draw(
    like: torch.Tensor,
    shape: Sequence[int],
    bounds: tuple[float, float] | None,
    generator: torch.Generator,
) -> torch.Tensor:
    if like.dtype is torch.bool:
        return torch.randint(0, 2, tuple(shape), generator=generator).bool()
    if like.is_complex():
        return torch.randn(tuple(shape), dtype=like.dtype, generator=generator)
    if not like.is_floating_point():
        low, high = bounds or (0.0, 1.0)
        drawn = torch.randint(int(low), int(high) + 1, tuple(shape), generator=generator)
        return drawn.to(like.dtype)
    if bounds is None:
        return torch.randn(tuple(shape), generator=generator).to(like.dtype)
    low, high = bounds
    unit = torch.rand(tuple(shape), generator=generator, dtype=torch.float64)
    return (low + (high - low) * unit).to(like.dtype)


# --- what is written down


def _document(
    definition: Definition,
    lab: Lab,
    axes: Axes,
    free: frozenset[str],
    outputs: Sequence[Out],
    calls: Sequence[Call],
) -> dict[str, Any]:
    small = lab.small(axes, free)
    return {
        "slug": definition.name,
        "title": definition.title,
        "category": definition.category,
        "dims": {
            name: _dim(axes.sizes[name], axes.seen[name], name in small) for name in sorted(free)
        },
        "inputs": [
            {
                "name": f"a{i}",
                "shape": [
                    name if name in free else size
                    for name, size in zip(axes.names[i], tensor.shape, strict=True)
                ],
                "dtype": dtype_name(tensor),
                "domain": _domain(tensor, lab.bounds[i]),
            }
            for i, tensor in enumerate(lab.tensors)
        ],
        "outputs": [
            {
                "name": f"out{i}" if len(outputs) > 1 else "out",
                "shape": list(out.shape),
                "dtype": out.dtype,
            }
            for i, out in enumerate(outputs)
        ],
        "behaviour": {"fixed_shape": not free, "library_calls": definition.library_calls},
        "description": f"Derived from the benchmark's own reference and {len(calls)} calls of it.",
        "tags": ["derived"],
    }


def _dim(size: int, seen: Sequence[int], small: bool) -> dict[str, Any]:
    """The empty tensor is in the contract where it was tested, sizes below the test's where the
    reference takes them."""
    minimum = 0 if 0 in seen else 1 if small else min(seen)
    sizes = sorted({*seen, size, *(extra for extra in EXTRA_SIZES if extra >= minimum)})
    return {"candidates": sizes, "usual": size, "minimum": minimum}


def _domain(tensor: torch.Tensor, bounds: tuple[float, float] | None) -> dict[str, Any]:
    if tensor.dtype is torch.bool:
        return {"kind": "bool"}
    if not tensor.is_floating_point() and not tensor.is_complex():
        low, high = bounds or (0.0, 1.0)
        return {"kind": "index", "low": int(low), "high": int(high) + 1}
    if bounds is None:
        return {"kind": "real"}
    return {"kind": "real", "low": bounds[0], "high": bounds[1]}


def _arguments(lab: Lab) -> str:
    return ", ".join(f"a{i}" for i in range(len(lab.tensors)))


def _body(form: str, lab: Lab) -> str:
    return form.format(*(f"a{i}" for i in range(len(lab.tensors))))


def _packed(form: str, lab: Lab) -> str:
    """The call; made a tuple where the reference itself returns another kind of sequence."""
    names = {f"a{i}": tensor for i, tensor in enumerate(_copies(lab.tensors))}
    returned = eval(_body(form, lab), {**names, lab.found.function: lab.found.call})  # noqa: S307
    plain = isinstance(returned, torch.Tensor) or type(returned) is tuple
    return _body(form, lab) if plain else f"tuple({_body(form, lab)})"


def _reference(definition: Definition, form: str, lab: Lab) -> str:
    entry = f"\n\n\ndef reference({_arguments(lab)}):\n    return {_packed(form, lab)}\n"
    return definition.code.rstrip() + entry


def _shim(definition: Definition, form: str, lab: Lab) -> str:
    """The call, below the test's own imports: the test stands in one file with the prediction, so
    a prediction that forgot to import torch works there, and is not to be blamed for it here."""
    return (
        "\n\n\n# Appended by the audit: the call that the benchmark's own test makes.\n"
        + "".join(f"{line}\n" for line in _imports(definition.test))
        + f"\n\ndef {ENTRY}({_arguments(lab)}):\n    return {_packed(form, lab)}\n"
    )


def _imports(test: str) -> list[str]:
    """What a test imports of the libraries, at its top level."""
    found: list[str] = []
    for node in ast.parse(test).body:
        match node:
            case ast.Import(names=aliases):
                roots = {alias.name.partition(".")[0] for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0):
                roots = {module.partition(".")[0]}
            case _:
                continue
        if roots <= LIBRARIES:
            found.append(ast.unparse(node))
    return found


def _try_out(task: CorpusTask) -> None:
    """Build the bench as a verifier would. Raises TaskError for a task that it would refuse."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "task.json").write_text(task.contract, encoding="utf-8")
        (folder / "reference.py").write_text(task.reference, encoding="utf-8")
        request = Request(load_task(folder), read_source(b"import torch"), ENTRY, 1)
        build_bench(request, DeviceMode.CPU_INTERPRET, torch.device("cpu"))


# --- many definitions


def _child(definition: Definition, connection: Any) -> None:
    os.dup2(2, 1)  # what a test prints is no answer
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        answer = derive(definition)
    except (TraceError, TaskError) as error:
        answer = Derived(definition.name, problem=str(error))
    except Exception as error:  # noqa: BLE001 - the benchmark's code may raise anything
        answer = Derived(definition.name, problem=f"{type(error).__name__}: {error}")
    connection.send_bytes(json.dumps(to_json(answer)).encode())


def derive_apart(definition: Definition, limit_s: float = TASK_S) -> Derived:
    """The same in a process of its own, which may hang, crash or fill memory."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_child, args=(definition, sender), daemon=True)
    child.start()
    sender.close()
    try:
        if not receiver.poll(limit_s):
            return Derived(definition.name, problem=f"its test takes more than {limit_s:.0f} s")
        return from_json(Derived, json.loads(receiver.recv_bytes()))
    except (EOFError, RecordError) as error:
        return Derived(definition.name, problem=f"its test ended its process: {error}")
    finally:
        child.kill()
        child.join()


def main() -> int:
    """Definitions on stdin, derived tasks on stdout, a line each."""
    for line in sys.stdin:
        derived = derive_apart(from_json(Definition, json.loads(line)))
        sys.stdout.write(json.dumps(to_json(derived)) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
