"""Backward: a task that declares gradients gives a second task, on which the same gates run.

The derived task takes the inputs, an upstream gradient for each output that is differentiated, and
the number of passes; it returns the outputs and the gradients. Its reference is autograd over the
task's own reference (in float64 for golden), its kernel the entry point with a backward pass behind
it (``verifier.candidate.backward``). So whatever a gate asks of a forward pass, it asks of a
gradient too: odd sizes, layouts, poisoned memory, who did the work. ``BackwardGate`` adds what only
gradients have, and leaves out the few questions that gradients do not answer.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Final

import torch

from verifier.contract import (
    DIFFERENTIABLE,
    Behaviour,
    Contract,
    Domain,
    DtypeVariable,
    Gradients,
    Homogeneity,
    Input,
    NanPolicy,
    Output,
    Scalar,
    TaskError,
    Weight,
)
from verifier.conventions.choose import Choice
from verifier.gate import (
    MAX_EVIDENCE,
    Finding,
    Gate,
    failed,
    not_applicable,
    passed,
    summary,
)
from verifier.gates.g07_layout import BROADCAST
from verifier.recorder import Watchful
from verifier.records import CaseNote, CaseRecord, DeviceMode, GateId, GateResult, GateStatus
from verifier.referee.bench import NUDGES, Bench, Tensors, digest, greatest_move, remember
from verifier.referee.compare import Rule, allowance, check_output, point_out, worst
from verifier.referee.eager import Function, as_tuple
from verifier.referee.generator import Stream
from verifier.referee.inputs import make_args
from verifier.referee.probes import judged_dtypes
from verifier.referee.roundings import Roundings
from verifier.subject import Arg, Reply, Subject

PASSES: Final = "passes"
"""Name of the argument that says how often to go backward over one graph, and of the parameter of
a case that says so."""
BACKWARD: Final = "backward"
"""Parameter of each case that is about gradients; replays go by it."""
STRIDE_0: Final = "stride_0"
"""Parameter of a case whose upstream gradients are one value, repeated with stride 0."""

LONG_SUM: Final = "long_sum"
"""Parameter of a case in which gradients are sums of many terms over this dim."""

GRADIENT: Final = "gradient of "
_PREFIX: Final = "backward: "
_WIDE: Final = frozenset({"float64", "float32", "bfloat16"})
"""Dtypes of which no ordinary value is so small that a power of two more or less rounds it."""
_NEXT_TO_NOTHING: Final = 1e-12
"""A smaller part of a gradient may be what is left of a sum that is nothing."""
_TERMS: Final = {DeviceMode.CPU_INTERPRET: 512, DeviceMode.CUDA: 1 << 14}
"""So many terms of one sign leave a sum in half precision far behind, whatever their order."""
_FEWEST: Final = 256
_OTHERS: Final = (64, 16, 8)
"""What the other dims are cut to, the first that fits."""
_HALF: Final = frozenset({"float16", "bfloat16"})
_UNFAIR: Final = frozenset({"zeros", "near_max"})
"""Gate 10's patterns of which formulas differ: the sign of a gradient that is zero (0 * g, or no g
at all), and next to the greatest number, which factor a product begins with."""
_ORDER: Final = (
    GateStatus.FAIL,
    GateStatus.ERROR,
    GateStatus.INCONCLUSIVE,
    GateStatus.PASS,
    GateStatus.NOT_APPLICABLE,
)
"""Of two results of one gate, the first of these counts."""


def upstream_name(output: str) -> str:
    """What the gradient that arrives at an output is called."""
    return f"upstream of {output}"


def gradient_name(item: str) -> str:
    """What the gradient of an input is called."""
    return f"{GRADIENT}{item}"


# --- the derived task


def _through(contract: Contract, gradients: Gradients) -> list[Output]:
    """The outputs that are differentiated."""
    usual = contract.usual_dtypes()
    return [
        output
        for output in contract.outputs
        if output.name in gradients.outputs
        or (not gradients.outputs and contract.dtype(output, usual) in DIFFERENTIABLE)
    ]


def derive(contract: Contract, gradients: Gradients) -> Contract:
    """The contract of the derived task."""
    outputs = _through(contract, gradients)
    wanted: list[Input | Weight] = [
        *(contract.input(name) for name in gradients.inputs),
        *gradients.weights,
    ]
    upstreams = tuple(_upstream(contract, output) for output in outputs)
    grads = tuple(Output(gradient_name(i.name), i.shape, i.dtype) for i in wanted)
    order = (*contract.call_order, *(item.name for item in upstreams), PASSES)
    return replace(
        contract,
        dtypes=_dtypes(contract, [*wanted, *outputs]),
        inputs=(*(_own(item, gradients) for item in contract.inputs), *upstreams),
        scalars=(*contract.scalars, Scalar(PASSES, 1)),
        order=order,
        outputs=(*contract.outputs, *grads),
        behaviour=_behaviour(contract, gradients, upstreams, grads),
        gradients=None,
        tolerances={**contract.tolerances, **gradients.tolerances},
        workloads=(),
    )


def _dtypes(
    contract: Contract, items: Sequence[Input | Output | Weight]
) -> dict[str, DtypeVariable]:
    """Variables that a gradient depends on, without candidates that have none."""
    used = {item.dtype for item in items}
    return {
        name: DtypeVariable(
            tuple(kind for kind in variable.candidates if kind in DIFFERENTIABLE), variable.usual
        )
        if name in used
        else variable
        for name, variable in contract.dtypes.items()
    }


def _own(item: Input, gradients: Gradients) -> Input:
    """An input of the task's: where it is not finite, formulas for one gradient differ."""
    keep = gradients.nonfinite and item.domain.allows_nonfinite
    return replace(item, domain=replace(item.domain, nonfinite=keep))


def _upstream(contract: Contract, output: Output) -> Input:
    """Ordinary values: sums of products overflow in whatever order they are taken."""
    behaviour = contract.behaviour
    defined = behaviour.nan is not NanPolicy.UNDEFINED and not behaviour.causal
    domain = Domain(nonfinite=defined, extreme=False)
    return Input(upstream_name(output.name), output.shape, output.dtype, domain)


def _behaviour(
    contract: Contract, gradients: Gradients, upstreams: Sequence[Input], grads: Sequence[Output]
) -> Behaviour:
    """What carries over: rows stay rows, and what changes no output changes no gradient. A past
    that no future reaches turns around, and sums move elsewhere."""
    forward, asked = contract.behaviour, gradients.nondeterministic
    return replace(
        forward,
        nondeterministic=forward.nondeterministic if asked is None else asked,
        order_free=(),
        symmetric=(),
        homogeneous=_linear(contract, upstreams, grads),
        causal=(),
        reductions=gradients.reductions,
    )


def _linear(
    contract: Contract, upstreams: Sequence[Input], grads: Sequence[Output]
) -> tuple[Homogeneity, ...]:
    """Gradients are linear in the upstream ones, exactly for powers of two."""
    usual = contract.usual_dtypes()
    items: list[Input | Output] = [*upstreams, *grads]
    kinds = {contract.dtype(item, usual) for item in items}
    if not kinds <= _WIDE:
        return ()
    linear = Homogeneity(
        inputs={item.name: 1 for item in upstreams}, outputs={item.name: 1 for item in grads}
    )
    return (linear,)


def plan(contract: Contract, gradients: Gradients) -> dict[str, Any]:
    """What the kernel's host must know, as JSON."""
    order, names = contract.call_order, [output.name for output in contract.outputs]
    through = [output.name for output in _through(contract, gradients)]
    return {
        "arguments": len(order),
        "results": len(names),
        "inputs": [[order.index(name), name] for name in gradients.inputs],
        "weights": [weight.name for weight in gradients.weights],
        "outputs": [[names.index(name), name] for name in through],
    }


def backward_choice(choice: Choice, contract: Contract) -> Choice:
    """How the kernel is called for the derived task."""
    assert contract.gradients is not None  # noqa: S101 - callers ask for tasks with gradients
    details = {**choice.details, "gradients": plan(contract, contract.gradients)}
    return replace(choice, details=details)


def differentiate(reference: Function, contract: Contract, gradients: Gradients) -> Function:
    """The derived task's reference: autograd over the task's own."""
    steps = plan(contract, gradients)
    count, inputs, weights = steps["arguments"], steps["inputs"], steps["weights"]
    names = [*gradients.inputs, *weights]

    def derived(*args: Any) -> tuple[torch.Tensor, ...]:
        own, upstream = list(args[:count]), args[count:-1]
        with torch.enable_grad():
            for place, _ in inputs:
                own[place] = own[place].detach().requires_grad_()
            outputs = as_tuple(reference(*own))
            ends = [outputs[place] for place, _ in steps["outputs"]]
            leaves = [own[place] for place, _ in inputs]
            leaves += _parameters(reference, own, weights)
            grads = torch.autograd.grad(ends, leaves, upstream, allow_unused=True)
        missing = [name for grad, name in zip(grads, names, strict=True) if grad is None]
        if missing:
            raise ValueError(f"the reference has no gradient of {missing[0]}")
        return (*(output.detach() for output in outputs), *grads)

    return derived


def _parameters(reference: Any, args: Sequence[Any], names: Sequence[str]) -> list[torch.Tensor]:
    """Parameters of the module behind a reference (``verifier.exchange.reference``)."""
    if not names:
        return []
    if not hasattr(reference, "parameters"):
        raise ValueError("the reference is no module, so it has no weights")
    there: Mapping[str, torch.Tensor] = reference.parameters(args)
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(f"the reference has no weight {missing[0]}")
    return [there[name] for name in names]


@dataclass(frozen=True, slots=True)
class GradientBench(Bench):
    """A bench of a derived task; its cases say so of themselves."""

    _roundings: OrderedDict[str, tuple[float, ...]] = field(default_factory=OrderedDict, repr=False)

    def case(self, gate: GateId, label: str, **given: Any) -> CaseRecord:
        return Bench.case(self, gate, f"{_PREFIX}{label}", **given, backward=True)

    def args(self, case: CaseRecord) -> list[Arg]:
        args = make_args(self.contract, case)
        args[self.position(PASSES)] = int(case.params.get(PASSES, 1))
        if case.params.get(STRIDE_0):
            for item in upstreams(self.contract):
                place = self.position(item.name)
                args[place] = _one_value(args[place])
        return args

    def sensitivity(self, args: Sequence[Arg]) -> tuple[float, ...]:
        """Also what roundings on the way move: a gradient may be a difference of large terms."""
        of_inputs, of_steps = Bench.sensitivity(self, args), self._moves(args)
        return tuple(map(max, of_inputs, of_steps))

    def _moves(self, args: Sequence[Arg]) -> tuple[float, ...]:
        """How far roundings at each step of the reference move each output (remembered)."""
        key = digest(args)
        if key not in self._roundings:
            remember(self._roundings, key, self._new_moves(args))
        return self._roundings[key]

    def _new_moves(self, args: Sequence[Arg]) -> tuple[float, ...]:
        truth, draws = self.golden(args), []
        for draw in range(NUDGES):
            with Roundings(draw):
                moved = self.compute_golden(args)
            if isinstance(truth, str) or isinstance(moved, str):
                return (float("inf"),) * len(self.contract.outputs)
            draws.append(tuple(map(greatest_move, truth, moved)))
        return tuple(map(max, *draws))

    def compare(
        self, case: CaseRecord, args: Sequence[Arg], outputs: Tensors, *, widen: float = 1.0
    ) -> Finding:
        """As any comparison, but for two things. Of a NaN in an upstream gradient all that is asked
        is that it is not swallowed. And where eager is no yardstick, which its gradients in half
        precision often are not, a kernel that is as right as fp32 can be passes."""
        golden, eager = self.golden(args), self.eager(args)
        if isinstance(golden, str) or not eager.returned:
            return Bench.compare(self, case, args, outputs, widen=widen)
        if case.params.get("input") in {item.name for item in upstreams(self.contract)}:
            return self._unswallowed(case, args, outputs)
        finding = Bench.compare(self, case, args, outputs, widen=widen)
        if finding.status is not GateStatus.INCONCLUSIVE:
            return finding
        moves = self.sensitivity(args)
        exact = self._check(case, golden, _rounded(golden, outputs), outputs, moves)
        if exact.passed:
            return exact
        like_eager = self._check(case, golden, eager.outputs, outputs, moves)
        return (
            not_applicable(f"torch itself is no guide here: {finding.detail}")
            if (like_eager.passed)
            else finding
        )

    def _check(
        self,
        case: CaseRecord,
        golden: Tensors,
        yardstick: Tensors,
        outputs: Tensors,
        moves: Sequence[float],
    ) -> Finding:
        """The comparator's rule with this yardstick for eager, however far off that is itself."""
        found = []
        rows = zip(self.contract.outputs, golden, yardstick, outputs, moves, strict=True)
        for out, truth, ref, got, move in rows:
            spare = move if isfinite(move) else 0.0
            rule = replace(self.rule(self.contract.dtype(out, case.dtypes)), spare=spare)
            by = Rule(tolerance=allowance(truth, ref, got.dtype, rule))
            found.append(check_output(out.name, truth, ref, got, by))
        return worst(found)

    def _unswallowed(self, case: CaseRecord, args: Sequence[Arg], outputs: Tensors) -> Finding:
        """Where a NaN upstream has a part in a gradient, that is not finite. Elsewhere 0 * NaN is
        as good as nothing: formulas differ in which of the two they take."""
        golden, part = self.golden(args), self.golden(self._planted_alone(case, args))
        if isinstance(golden, str) or isinstance(part, str):
            return not_applicable(f"the reference refuses this input: {golden}")
        for output, truth, share, got in zip(
            self.contract.outputs, golden, part, outputs, strict=True
        ):
            if not output.name.startswith(GRADIENT):
                continue
            lost = truth.isnan() & (share.abs() > _NEXT_TO_NOTHING) & got.isfinite()
            if lost.any():
                count = int(lost.sum())
                finding = failed(f"a NaN upstream does not reach {count} values of {output.name}")
                return point_out(finding, output.name, lost, truth.to(got.dtype), got)
        return passed()

    def _planted_alone(self, case: CaseRecord, args: Sequence[Arg]) -> list[Arg]:
        """Ones where a NaN is planted upstream, nothing elsewhere: gradients are linear in that."""
        alone = list(args)
        for item in upstreams(self.contract):
            place = self.position(item.name)
            arg = args[place]
            assert isinstance(arg, torch.Tensor)  # noqa: S101 - upstream gradients are tensors
            draws = Stream(case.seed, "part", item.name).uniform(arg.numel())
            values = torch.from_numpy(draws).reshape(arg.shape) + 0.5
            alone[place] = torch.where(arg.isnan(), values, 0.0).to(arg.dtype)
        return alone


def _rounded(golden: Tensors, outputs: Tensors) -> Tensors:
    return tuple(truth.to(got.dtype) for truth, got in zip(golden, outputs, strict=True))


def upstreams(contract: Contract) -> list[Input]:
    """The upstream gradients among a derived task's inputs."""
    names = {upstream_name(output.name) for output in contract.outputs}
    return [item for item in contract.inputs if item.name in names]


def _one_value(arg: Arg) -> Arg:
    """Ones with stride 0, as ``.sum().backward()`` hands them back, in memory as large as a plain
    tensor's: who takes them for contiguous reads NaN, and not past the end."""
    assert isinstance(arg, torch.Tensor)  # noqa: S101 - upstream gradients are tensors
    storage = torch.full((max(arg.numel(), 1),), float("nan"), dtype=arg.dtype)
    storage[0] = 1.0
    return storage.as_strided(arg.shape, (0,) * arg.dim())


def derive_bench(bench: Bench) -> GradientBench | None:
    """The bench of the derived task, if the task declares gradients."""
    gradients = bench.contract.gradients
    if gradients is None:
        return None
    try:
        contract = derive(bench.contract, gradients)
    except ValueError as error:
        raise TaskError(f"gradients: {error}") from error
    return GradientBench(
        contract=contract,
        reference=differentiate(bench.reference, bench.contract, gradients),
        mode=bench.mode,
        device=bench.device,
        seed=bench.seed,
        language=bench.language,
        constants=bench.constants,
        rule_factor=bench.rule_factor,
    )


# --- the gates


class BackwardGate:
    """A gate as it is asked about gradients."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.info = gate.info
        self.self_check = gate.self_check

    def applies(self, bench: Bench) -> str | None:
        reason = self.gate.applies(bench)
        if self.info.id is GateId.ACCUMULATION and any(_long_sums(bench)):
            return None
        return reason and f"{_PREFIX}{reason}"

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """The gate's own, but for those that gradients do not answer, then those of gradients."""
        if self.gate.applies(bench) is None:
            yield from (case for case in self.gate.cases(bench) if _is_fair(case, bench))
        match self.info.id:
            case GateId.AGREEMENT:
                yield bench.case(GateId.AGREEMENT, "upstream of stride 0", stride_0=True)
                yield bench.case(GateId.AGREEMENT, "second pass over one graph", passes=2)
            case GateId.ACCUMULATION:
                yield from _long_sums(bench)
            case GateId.LAYOUT:
                for item in upstreams(bench.contract):
                    layouts = {item.name: BROADCAST}
                    yield bench.case(GateId.LAYOUT, f"{BROADCAST}-{item.name}", layouts=layouts)

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        judge = _long_sum if case.params.get(LONG_SUM) else self.gate.judge
        finding = _told(judge(bench, case, subject))
        if not finding.failed:
            return finding
        detail = finding.detail
        if case.params.get(STRIDE_0):
            detail += " (the upstream gradient has stride 0, as .sum().backward() gives it)"
        if case.params.get(PASSES):
            detail += " (in a second pass over the same graph)"
        return replace(finding, detail=detail)

    def in_passing(self, bench: Bench, args: Sequence[Arg], reply: Reply) -> Finding | None:
        """What the gate has against a call of another gate's."""
        if not isinstance(self.gate, Watchful):
            return None
        finding = self.gate.in_passing(bench, args, reply)
        return finding and _told(finding)


def _long_sums(bench: Bench) -> Iterator[CaseRecord]:
    """The gradient of what is used all along a dim is a sum over that dim: one with many terms, in
    the half precisions that are judged here, where the contract wants sums carried more widely."""
    if bench.contract.behaviour.accumulate in _HALF:
        return
    narrow = [d for d in judged_dtypes(bench) if _HALF & {*_gradient_dtypes(bench, d)}]
    for dim in _broadcast_dims(bench.contract):
        dims = _with_many(bench, dim)
        for dtypes in narrow if dims else ():
            label = f"sum of {dims[dim]} terms over {dim}, {'/'.join(dtypes.values())}"
            yield bench.case(
                GateId.ACCUMULATION, label, dims=dims, dtypes=dtypes, fill="uniform", long_sum=dim
            )


def _gradient_dtypes(bench: Bench, dtypes: Mapping[str, str]) -> Iterator[str]:
    outputs = (out for out in bench.contract.outputs if out.name.startswith(GRADIENT))
    return (bench.contract.dtype(out, dtypes) for out in outputs)


def _broadcast_dims(contract: Contract) -> list[str]:
    """Dims of some upstream gradient that some gradient has not."""
    through = upstreams(contract)
    grads = [out for out in contract.outputs if out.name.startswith(GRADIENT)]
    return [
        dim
        for dim in contract.dims
        if any(contract.axes(item, dim) for item in through)
        and any(not _has(out, dim) for out in grads)
    ]


def _with_many(bench: Bench, dim: str) -> dict[str, int]:
    """Small sizes, but this dim long; {} where neither contract nor memory let it be."""
    length = _TERMS[bench.mode]
    while length >= _FEWEST and not bench.contract.behaviour.fixed_shape:
        for others in _OTHERS:
            dims = {**_cut_to(bench.contract, others), dim: length}
            if bench.contract.allows(dims) and bench.elements(dims) <= bench.budget:
                return dims
        length //= 2
    return {}


def _cut_to(contract: Contract, size: int) -> dict[str, int]:
    """Of each dim the greatest candidate that is no greater, or the smallest."""
    usual = contract.usual_dims()
    ranked = {name: sorted({*dim.candidates, usual[name]}) for name, dim in contract.dims.items()}
    return {
        name: max((one for one in sizes if 0 < one <= size), default=sizes[-1])
        for name, sizes in ranked.items()
    }


def _long_sum(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """Those gradients are as right as their dtype and a sum in fp32 can be. Eager is no yardstick:
    on a CPU torch itself sums some of them in half precision."""
    args = bench.args(case)
    reply = subject.call(args)
    outputs = bench.refused_values(case, reply, subject) or bench.results(case, args, reply)
    golden = bench.golden(args)
    if isinstance(outputs, Finding):
        return outputs
    if isinstance(golden, str):
        return not_applicable(f"the reference refuses this input: {golden}")
    dim, moves = case.params[LONG_SUM], bench.sensitivity(args)
    rows = zip(bench.contract.outputs, golden, outputs, moves, strict=True)
    sums = (row for row in rows if row[0].name.startswith(GRADIENT) and not _has(row[0], dim))
    return worst([_summed(bench, *row, case.dims[dim]) for row in sums])


def _summed(
    bench: Bench, out: Output, truth: torch.Tensor, got: torch.Tensor, move: float, terms: int
) -> Finding:
    """Equal terms can round the same way each time, so an fp32 sum may be off by that, too."""
    scale = float(truth.abs().max()) if truth.numel() else 0.0
    spare = (move if isfinite(move) else 0.0) + terms * 2.0**-24 * scale
    rule = Rule(bench.rule_factor, spare=spare)
    finding = check_output(out.name, truth, truth.to(got.dtype), got, rule)
    return replace(
        finding, detail=finding.detail.replace("eager", f"one rounding of {terms} terms")
    )


def _has(item: Output, dim: str) -> bool:
    """Whether the size of an axis depends on this dim."""
    return any(dim in re.findall(r"\w+", str(expression)) for expression in item.shape)


def _told(finding: Finding) -> Finding:
    """The finding, with what it is about."""
    detail = finding.detail and _PREFIX + finding.detail.removeprefix(_PREFIX)
    return replace(finding, detail=detail)


def _is_fair(case: CaseRecord, bench: Bench) -> bool:
    """Whether gradients answer this case whatever formula they come from: infinities cancel in one
    and not in another, and so does the sign of nothing."""
    if case.params.get("pattern") in _UNFAIR:
        return False
    plant = str(case.params.get("plant", ""))
    upstream = case.params.get("input") in {item.name for item in upstreams(bench.contract)}
    return not (upstream and ("Inf" in plant or plant == "mixed rows"))


# --- the verdict


def merged(forward: GateResult, backward: GateResult) -> GateResult:
    """One result of both: the worse status, all counts and notes; the counterexample is forward's
    if there is one, for a wrong gradient may follow from it."""
    worse = min(forward, backward, key=lambda one: _ORDER.index(one.status))
    status = worse.status
    passed, failed = forward.passed + backward.passed, forward.failed + backward.failed
    return replace(
        worse,
        summary=summary(status, passed, failed),
        hard=forward.hard or backward.hard,
        passed=passed,
        failed=failed,
        notes=(*forward.notes, *backward.notes, *_unasked(status, forward, backward)),
        evidence=_evidence(forward, backward),
    )


def _unasked(status: GateStatus, forward: GateResult, backward: GateResult) -> Iterator[CaseNote]:
    """What one of the two was not asked at all, beside what the other says."""
    for one in (forward, backward):
        if one.status is GateStatus.NOT_APPLICABLE is not status and not one.notes:
            yield CaseNote(one.status, one.reason, 1)


def _evidence(forward: GateResult, backward: GateResult) -> tuple[str, ...]:
    half = MAX_EVIDENCE // 2
    return (*forward.evidence, *backward.evidence[:half])[:MAX_EVIDENCE]
