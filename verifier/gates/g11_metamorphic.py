"""G11, metamorphic relations: what the contract declares about the op holds between two calls.

Each relation says how to change the inputs and what that does to the outputs. Where the arithmetic
stays the same operation for operation (rows permuted, doubled, scaled by a power of two, the future
changed) the outputs must match bitwise. Where an honest kernel may round in another order, they
must match within twice what the comparator allows: once for each of the two results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from verifier.contract import Contract, Input, Output, ReductionKind, Tolerance
from verifier.gate import Finding, not_applicable, passed
from verifier.records import CaseRecord, GateId, GateInfo
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import Rule, allowance, bitwise, check_output, worst
from verifier.referee.generator import Stream, derive_seed
from verifier.subject import Arg, Subject

Change = Callable[[torch.Tensor, tuple[int, ...]], torch.Tensor]
ROWS: Final = 8
"""Rows are enough when they are worked on one by one; the interpreter takes its time for each."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Two sets of arguments and what connects their outputs.

    ``after`` is None where both sides are in one call. ``expect`` picks (or computes) from the
    first outputs what ``see`` must find in the second.
    """

    promise: str
    before: list[Arg]
    after: list[Arg] | None
    expect: Callable[[Tensors], Tensors]
    see: Callable[[Tensors], Tensors] = lambda outputs: outputs
    exact: bool = True
    after_dims: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """One case about to be tried."""

    bench: Bench
    case: CaseRecord

    @property
    def contract(self) -> Contract:
        return self.bench.contract

    @property
    def stream(self) -> Stream:
        return Stream(self.case.seed, "relation")

    @property
    def same_arithmetic(self) -> bool:
        """Whether rows stay bitwise the same wherever they stand. Matrix products are blocked over
        rows, in libraries and in the interpreter's numpy alike, so for them it is advisory."""
        kinds = {reduction.kind for reduction in self.contract.behaviour.reductions}
        return ReductionKind.DOT not in kinds

    def size(self, dim: str) -> int:
        return self.case.dims[dim]

    def change_args(self, args: Sequence[Arg], dim: str, change: Change) -> list[Arg]:
        changed = list(args)
        for item in self.contract.inputs:
            place, axes = self.bench.position(item.name), self.contract.axes(item, dim)
            arg = changed[place]
            if axes and isinstance(arg, torch.Tensor):
                changed[place] = change(arg, axes).contiguous()
        return changed

    def change_outputs(self, dim: str, change: Change) -> Callable[[Tensors], Tensors]:
        outputs = self.contract.outputs

        def apply(tensors: Tensors) -> Tensors:
            pairs = zip(outputs, tensors, strict=True)
            return tuple(change(t, self.contract.axes(out, dim)) for out, t in pairs)

        return apply


def _pick(rows: Sequence[int]) -> Change:
    """These rows, in this order, along each of the axes."""

    def change(tensor: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
        for axis in axes:
            tensor = tensor.index_select(axis, torch.tensor(rows, dtype=torch.int64))
        return tensor

    return change


def permute(at: Setting, dim: str) -> Relation:
    """Rows in another order: the outputs in that order."""
    order = at.stream.permutation(at.size(dim)).tolist()
    args, change = at.bench.args(at.case), _pick(order)
    after = at.change_args(args, dim, change)
    promise = f"permuting {dim} permutes the outputs"
    return Relation(promise, args, after, at.change_outputs(dim, change), exact=at.same_arithmetic)


def duplicate(at: Setting, dim: str) -> Relation:
    """One row twice in one call: twice the same output."""
    first, second = at.stream.permutation(at.size(dim)).tolist()[:2]
    rows = [first if row == second else row for row in range(at.size(dim))]
    args = at.change_args(at.bench.args(at.case), dim, _pick(rows))
    return Relation(
        f"equal rows along {dim} give equal outputs",
        args,
        None,
        at.change_outputs(dim, _pick([first])),
        at.change_outputs(dim, _pick([second])),
        exact=at.same_arithmetic,
    )


def single(at: Setting, dim: str) -> Relation:
    """One row alone: as in company. Advisory bitwise, for launch shapes may follow the batch."""
    row = int(at.stream.integers(0, at.size(dim), 1)[0])
    args, change = at.bench.args(at.case), _pick([row])
    return Relation(
        f"a row alone gives what it gives among others along {dim}",
        args,
        at.change_args(args, dim, change),
        at.change_outputs(dim, change),
        exact=False,
        after_dims={**at.case.dims, dim: 1},
    )


def reorder(at: Setting, dim: str) -> Relation:
    """Terms of a sum, keys of an attention, in another order: the same result but for rounding."""
    order = at.stream.permutation(at.size(dim)).tolist()
    args, change = at.bench.args(at.case), _pick(order)
    after = at.change_args(args, dim, change)
    promise = f"the order along {dim} does not matter"
    return Relation(promise, args, after, at.change_outputs(dim, change), exact=False)


def scale(at: Setting, index: str) -> Relation:
    """Inputs times a power of two: outputs times its power, exactly."""
    relation = at.contract.behaviour.homogeneous[int(index)]
    power = int(at.case.params["power"])
    args = at.bench.args(at.case)
    after = list(args)
    for name, degree in relation.inputs.items():
        place = at.bench.position(name)
        after[place] = _scaled(after[place], power * degree)
    names = [out.name for out in at.contract.outputs]
    powers = [power * relation.outputs.get(name, 0) for name in names]

    def expect(outputs: Tensors) -> Tensors:
        pairs = zip(outputs, powers, strict=True)
        return tuple(out * 2.0**exponent if exponent else out for out, exponent in pairs)

    return Relation(f"scaling by 2**{power} scales the outputs exactly", args, after, expect)


def _scaled(arg: Arg, power: int) -> Arg:
    return arg * 2.0**power if isinstance(arg, torch.Tensor) else arg


def shift(at: Setting, index: str) -> Relation:
    """A constant added along a dim, another one for each row: nothing changes.

    Small integers plus or minus a power of two: exact in each dtype, and far beyond exp's range."""
    relation = at.contract.behaviour.shift_invariant[int(index)]
    args = at.bench.args(at.case)
    place = at.bench.position(relation.input)
    arg = args[place]
    assert isinstance(arg, torch.Tensor)  # noqa: S101 - the contract says that it is an input
    axes = at.contract.axes(at.contract.input(relation.input), relation.dim)
    shape = [1 if axis in axes else size for axis, size in enumerate(arg.shape)]
    signs = at.stream.integers(0, 2, torch.Size(shape).numel()) * 2 - 1
    constant = 128.0 if arg.dtype is torch.bfloat16 else 1024.0
    after = list(args)
    after[place] = arg + (torch.from_numpy(signs).reshape(shape) * constant).to(arg.dtype)
    promise = f"adding a constant to {relation.input} along {relation.dim} changes nothing"
    return Relation(promise, args, after, lambda outputs: outputs, exact=False)


def causal(at: Setting, index: str) -> Relation:
    """Another future: the same past, bitwise."""
    relation = at.contract.behaviour.causal[int(index)]
    size, dim = at.size(relation.dim), relation.dim
    last = int(at.stream.integers(0, max(size - 1, 1), 1)[0])
    args = at.bench.args(at.case)
    other = at.bench.args(replace(at.case, seed=derive_seed(at.case.seed, "future")))
    after = list(args)
    for name in relation.inputs:
        place = at.bench.position(name)
        axes = at.contract.axes(at.contract.input(name), dim)
        after[place] = _future(args[place], other[place], axes, last)
    past = at.change_outputs(relation.output_dim or dim, _pick(range(last + 1)))
    return Relation(
        f"what comes after position {last} of {dim} has no say", args, after, past, past
    )


def _future(arg: Arg, other: Arg, axes: Sequence[int], last: int) -> Arg:
    if not isinstance(arg, torch.Tensor) or not isinstance(other, torch.Tensor):
        return arg
    for axis in axes[:1]:
        length = arg.shape[axis] - last - 1
        arg = torch.cat(
            [arg.narrow(axis, 0, last + 1), other.narrow(axis, last + 1, length)], dim=axis
        )
    return arg


def exchange(at: Setting, index: str) -> Relation:
    """Two inputs change places: nothing changes but rounding."""
    left, right = at.contract.behaviour.symmetric[int(index)]
    args = at.bench.args(at.case)
    after, i, j = list(args), at.bench.position(left), at.bench.position(right)
    after[i], after[j] = args[j], args[i]
    promise = f"{left} and {right} may change places"
    return Relation(promise, args, after, lambda outputs: outputs, exact=False)


RELATIONS: Final[Mapping[str, Callable[[Setting, str], Relation]]] = {
    function.__name__: function
    for function in (permute, duplicate, single, reorder, scale, shift, causal, exchange)
}


def _declared(contract: Contract) -> Iterator[tuple[str, str]]:
    """(relation, dim or index) for each promise of the contract."""
    behaviour = contract.behaviour
    for dim in behaviour.independent:
        if _by_row(contract, dim):
            yield from ((name, dim) for name in ("permute", "duplicate", "single"))
    for name, count in (
        ("scale", len(behaviour.homogeneous)),
        ("shift", len(behaviour.shift_invariant)),
        ("causal", len(behaviour.causal)),
    ):
        yield from ((name, str(index)) for index in range(count))
    yield from (("reorder", dim) for dim in behaviour.order_free)
    for index, pair in enumerate(behaviour.symmetric):
        left, right = (contract.input(name) for name in pair)
        if left.shape == right.shape and left.dtype == right.dtype:
            yield "exchange", str(index)


def _by_row(contract: Contract, dim: str) -> bool:
    def has(item: Input | Output) -> bool:
        return bool(contract.axes(item, dim))

    return any(map(has, contract.inputs)) and all(map(has, contract.outputs))


class Metamorphic:
    info = GateInfo(
        GateId.METAMORPHIC,
        "Metamorphic",
        "the exact algebraic relations that the op declares hold between calls",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        if bench.contract.behaviour.random:
            return "the op draws random numbers: no two calls are comparable"
        if not any(True for _ in _declared(bench.contract)):
            return "the contract declares no relation"
        return None

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        dims = self._dims(bench)
        for name, about in _declared(bench.contract):
            fill = "small_int" if name == "shift" else "normal"
            for power in self._powers(bench) if name == "scale" else (0,):
                label = f"{name}-{about}-{power}" if power else f"{name}-{about}"
                yield bench.case(
                    GateId.METAMORPHIC,
                    label,
                    dims=dims,
                    fill=fill,
                    relation=name,
                    about=about,
                    power=power,
                )

    def _powers(self, bench: Bench) -> tuple[int, ...]:
        """Far enough to lay bare an epsilon or a clamp, near enough for half precision to hold."""
        wide = set(bench.contract.usual_dtypes().values()) <= {"float32", "float64"}
        return (8, -8) if wide else (3,)

    def _dims(self, bench: Bench) -> dict[str, int]:
        """Small sizes, with few rows along independent dims, but two at least."""
        dims = bench.small_dims(ROWS)
        for dim in bench.contract.behaviour.independent:
            few = [n for n in bench.contract.dims[dim].candidates if 2 <= n <= ROWS]
            trial = {**dims, dim: max(few, default=ROWS)}
            if dims[dim] < 2 and bench.contract.allows(trial):
                dims = trial
        return dims

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        name, about = case.params["relation"], case.params["about"]
        reason = self._too_small(bench, case, name, about)
        if reason:
            return not_applicable(reason)
        relation = RELATIONS[name](Setting(bench, case), about)
        before = self._outputs(bench, case, relation.before, subject)
        if isinstance(before, Finding):
            return before
        after: Tensors | Finding = before
        if relation.after is not None:
            small = replace(case, dims=relation.after_dims or case.dims)
            after = self._outputs(bench, small, relation.after, subject)
        if isinstance(after, Finding):
            return after
        expected, seen = relation.expect(before), relation.see(after)
        finding = _equal(bench, relation, expected, seen)
        exact = relation.exact and not bench.contract.behaviour.nondeterministic
        if finding.passed or (exact and self._repeats(bench, case, relation, subject)):
            return finding
        return _close(bench, case, relation, expected, seen)

    def _too_small(self, bench: Bench, case: CaseRecord, name: str, about: str) -> str | None:
        if name == "single" and not bench.contract.allows({**case.dims, about: 1}):
            return f"{about} cannot be 1"
        dim = bench.contract.behaviour.causal[int(about)].dim if name == "causal" else about
        if name in ("duplicate", "causal") and case.dims[dim] < 2:
            return f"{dim} has one position only"
        return None

    def _outputs(
        self, bench: Bench, case: CaseRecord, args: Sequence[Arg], subject: Subject
    ) -> Tensors | Finding:
        return bench.formed(case, args, subject.call(args))

    def _repeats(
        self, bench: Bench, case: CaseRecord, relation: Relation, subject: Subject
    ) -> bool:
        """Whether the kernel repeats itself bitwise: a race is gate 3's finding, not this one's."""
        runs = [self._outputs(bench, case, relation.before, subject) for _ in range(3)]
        first = runs[0]
        return not isinstance(first, Finding) and all(
            not isinstance(run, Finding) and _equal(bench, relation, first, run).passed
            for run in runs[1:]
        )


def _equal(bench: Bench, relation: Relation, expected: Tensors, seen: Tensors) -> Finding:
    outputs = zip(bench.contract.outputs, expected, seen, strict=True)
    findings = [bitwise(out.name, a, b, f"broken: {relation.promise}") for out, a, b in outputs]
    return worst(findings)


def _close(
    bench: Bench, case: CaseRecord, relation: Relation, expected: Tensors, seen: Tensors
) -> Finding:
    """Equal within what the comparator allows the two results together."""
    both = [relation.before, relation.after or relation.before]
    allowed = [_allowances(bench, case, args) for args in both]
    if not all(allowed):
        return not_applicable("the reference refuses this input")
    findings = []
    pairs = zip(bench.contract.outputs, expected, seen, *allowed, strict=True)
    for out, a, b, one, two in pairs:
        rule = Rule(tolerance=Tolerance(one.atol + two.atol, one.rtol + two.rtol))
        wide = a.to(torch.complex128) if a.is_complex() else a.double()
        findings.append(check_output(out.name, wide, a, b, rule))
    finding = worst(findings)
    if finding.passed:
        return passed(f"{relation.promise}, but for rounding")
    return replace(finding, detail=f"broken: {relation.promise}: {finding.detail}")


def _allowances(bench: Bench, case: CaseRecord, args: Sequence[Arg]) -> list[Tolerance]:
    """What each output may be off by here, its conditioning included; nothing where the reference
    refuses."""
    golden, eager = bench.golden(args), bench.eager(args)
    if isinstance(golden, str) or not eager.returned:
        return []
    rows = zip(bench.contract.outputs, golden, eager.outputs, bench.sensitivity(args), strict=True)
    allowances = []
    for out, truth, ref, slack in rows:
        rule = bench.rule(bench.contract.dtype(out, case.dtypes))
        plain = allowance(truth, ref, ref.dtype, rule)
        allowances.append(Tolerance(plain.atol + slack, plain.rtol))
    return allowances


GATE = Metamorphic()
