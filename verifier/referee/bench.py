"""The bench, what a gate works with: contract, device, seeds, inputs, references, comparator."""

from __future__ import annotations

import hashlib
import sys
import types
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod, sqrt
from typing import Any, Final

import numpy as np
import torch

from verifier.contract import Contract, Output, Task, TaskError
from verifier.gate import Finding, failed, inconclusive, not_applicable
from verifier.records import CaseRecord, DeviceMode, GateId, Language
from verifier.referee.compare import Rule, check_output, worst
from verifier.referee.eager import Eager, Function, as_tuple
from verifier.referee.generator import Stream, derive_seed
from verifier.referee.inputs import make_args, torch_dtype
from verifier.referee.weight import Growth, measure_growth
from verifier.subject import ORDINARY, Arg, CallOptions, Reply, ReplyKind, Subject

Tensors = tuple[torch.Tensor, ...]

INTERPRETER_BF16: Final = (
    "Triton's interpreter computes every bf16 operation wrongly; judged on a GPU only"
)
BUDGET: Final[Mapping[DeviceMode, int]] = {
    DeviceMode.CPU_INTERPRET: 1 << 14,
    DeviceMode.CUDA: 1 << 22,
}
"""Greatest number of elements of one input in an ordinary case."""

ROWS: Final = 8
"""Independent rows of an ordinary case in the interpreter, which takes about 2 ms for a program."""

_CACHE_SIZE: Final = 256

MADE: Final = 4
"""Cases whose arguments are kept: eager is asked right before the kernel is, and with the same."""
FP32_UNIT: Final = 2.0**-24

NUDGES: Final = 4
"""Draws of rounding errors that ``Bench.sensitivity`` tries: where the answer jumps, one draw may
happen not to make it."""

OWN_ROUNDING: Final = 8 * 2.0**-53
"""Golden's own error, as a share of the greatest input value."""

ORDINARY_SIZE: Final = 2.0**16
"""Inputs count as no greater than this there: what passes on 1e38 shows in the moves anyway."""


def load_reference(task: Task) -> Function:
    """The task's ``reference``. Raises TaskError when the file does not define one."""
    module = types.ModuleType(f"_reference_{task.digest[:12]}")
    path = str(task.folder / "reference.py")
    sys.modules[module.__name__] = module
    try:
        exec(compile(task.reference_source, path, "exec"), module.__dict__)  # noqa: S102 - trusted
    except (Exception, SystemExit) as error:
        raise TaskError(f"{path}: {type(error).__name__}: {error}") from error
    reference = module.__dict__.get("reference")
    if not callable(reference):
        raise TaskError(f"{path}: defines no function 'reference'")
    return reference  # type: ignore[no-any-return]


def digest(values: Sequence[Arg]) -> str:
    """sha256 over dtype, shape and bytes of each value, in order; layout does not enter."""
    state = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            state.update(f"{value.dtype}{tuple(value.shape)}".encode())
            # A copy, because a tensor of one value counts as contiguous whatever its stride.
            flat = value.detach().cpu().flatten().clone(memory_format=torch.contiguous_format)
            state.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        else:
            state.update(repr(value).encode())
    return state.hexdigest()


def _upcast(arg: Arg) -> Arg:
    if not isinstance(arg, torch.Tensor):
        return arg
    if arg.is_complex():
        return arg.to(torch.complex128)
    return arg.double() if arg.is_floating_point() else arg.clone()


@dataclass(frozen=True, slots=True)
class Bench:
    """One task on one device, with one master seed.

    ``language`` is the kernel's; it decides which dtypes the interpreter can judge. ``constants``
    are integers in the kernel's source that look like tile sizes (gate 4 puts shapes around them).
    """

    contract: Contract
    reference: Function
    mode: DeviceMode
    device: torch.device
    seed: int
    language: Language
    constants: tuple[int, ...] = ()
    rule_factor: float = 2.0
    _made: OrderedDict[str, tuple[Contract, list[Arg]]] = field(
        default_factory=OrderedDict, repr=False
    )
    _golden: OrderedDict[str, Tensors | str] = field(default_factory=OrderedDict, repr=False)
    _eager: OrderedDict[str, Reply] = field(default_factory=OrderedDict, repr=False)
    _refused: set[str] = field(default_factory=set, repr=False)
    """Sizes and dtypes that a fresh process of a subject's has refused."""
    _growth: list[Growth | None] = field(default_factory=list, repr=False)

    # --- cases and inputs

    def case(
        self,
        gate: GateId,
        label: str,
        *,
        dims: Mapping[str, int] | None = None,
        dtypes: Mapping[str, str] | None = None,
        fill: str = "normal",
        **params: Any,
    ) -> CaseRecord:
        """A case of a gate, with a seed derived from the master seed, the gate and the label.

        Without ``dims`` or ``dtypes`` it takes ``small_dims()`` and the usual dtypes.
        """
        return CaseRecord(
            label=label,
            dims=dict(dims if dims is not None else self.small_dims()),
            dtypes=dict(dtypes if dtypes is not None else self.contract.usual_dtypes()),
            fill=fill,
            seed=derive_seed(self.seed, gate.value, label),
            params=params,
        )

    def args(self, case: CaseRecord) -> list[Arg]:
        """Contiguous CPU arguments in call order; fresh tensors at each call."""
        key = repr((case.dims, case.dtypes, case.fill, case.seed))
        contract, made = self._made.get(key, (None, []))
        if contract is not self.contract:
            made = make_args(self.contract, case)
            remember(self._made, key, (self.contract, made), MADE)
        return [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in made]

    def named(self, args: Sequence[Arg]) -> dict[str, Arg]:
        """The arguments by name."""
        return dict(zip(self.contract.call_order, args, strict=True))

    def position(self, name: str) -> int:
        """Where an argument stands in the call."""
        return self.contract.call_order.index(name)

    # --- sizes

    @property
    def budget(self) -> int:
        return BUDGET[self.mode]

    def elements(self, dims: Mapping[str, int]) -> int:
        """The number of elements of the greatest input or output."""
        sizes = [_product(self.contract.shape(item, dims)) for item in self.contract.tensors]
        return max(sizes)

    def reference_elements(self, dims: Mapping[str, int]) -> int | None:
        """About how many elements the greatest tensor has that the reference makes on its way; None
        where that cannot be told beforehand."""
        if not self._growth:
            self._growth.append(measure_growth(self.contract, self.reference))
        growth = self._growth[0]
        return growth.elements(dims) if growth else None

    def small_dims(self, rows: int = ROWS) -> dict[str, int]:
        """The usual sizes, the greatest dims cut to smaller candidates to fit half the budget. In
        the interpreter the rows (see ``dear_dims``) are at most ``rows`` together, or as few as the
        contract allows."""
        dims = self.contract.usual_dims()
        while self.elements(dims) > self.budget // 2:
            smaller = self.shrink_once(dims)
            if smaller is None:
                break
            dims = smaller
        while _product([dims[name] for name in self.dear_dims]) > rows:
            name = max(self.dear_dims, key=lambda name: dims[name])
            multiple = self.contract.dims[name].multiple_of
            trial = {**dims, name: dims[name] // 2 // multiple * multiple}
            if trial[name] < 2 or not self.contract.allows(trial):
                break
            dims = trial
        return dims

    def home_dims(self) -> dict[str, int]:
        """Where gate 1 asks: the usual sizes if they are affordable. A kernel that refuses them is
        wrong, so what it refuses elsewhere can be asked there."""
        usual = self.contract.usual_dims()
        return usual if self.elements(usual) <= 2 * self.budget else self.small_dims()

    @property
    def dear_dims(self) -> tuple[str, ...]:
        """Dims of rows, for each of which a kernel is likely to start a program of its own: in the
        interpreter that costs time. Where all dims are independent, kernels see no rows."""
        independent = self.contract.behaviour.independent
        rows = self.mode is DeviceMode.CPU_INTERPRET and set(self.contract.dims) - set(independent)
        return independent if rows else ()

    def shrink_once(self, dims: Mapping[str, int]) -> dict[str, int] | None:
        """With the greatest dim that has one at its next smaller candidate; None where none has."""
        for name in sorted(dims, key=lambda n: -dims[n]):
            lower = [c for c in self.contract.dims[name].candidates if 1 < c < dims[name]]
            for size in sorted(lower, reverse=True):
                trial = {**dims, name: size}
                if self.contract.allows(trial):
                    return trial
        return None

    def odd_dims(self) -> dict[str, int]:
        """Like ``small_dims``, each dim at its greatest odd candidate of about that size, so that
        tiles have tails; ``small_dims`` where the contract has no such sizes."""
        small = self.small_dims()
        odd = {name: self._odd_size(name, size) for name, size in small.items()}
        fits = self.contract.allows(odd) and self.elements(odd) <= self.budget
        return odd if fits else small

    def _odd_size(self, name: str, size: int) -> int:
        most = max(size, ROWS if name in self.dear_dims else 128)
        candidates = self.contract.dims[name].candidates
        odd = [n for n in candidates if n % 2 and 1 < n <= most]
        return max(odd, default=size)

    # --- what can be judged here

    def dtype_names(self, case: CaseRecord) -> set[str]:
        """Every dtype that this case's inputs and outputs have."""
        contract = self.contract
        return {contract.dtype(item, case.dtypes) for item in contract.tensors}

    def cannot_judge(self, case: CaseRecord) -> str | None:
        """None, or why this device cannot judge the case at all."""
        interpreted = self.mode is DeviceMode.CPU_INTERPRET and self.language is Language.TRITON
        if interpreted and any(
            name == "bfloat16" or name.startswith("float8") for name in self.dtype_names(case)
        ):
            return INTERPRETER_BF16
        return None

    # --- references

    def golden(self, args: Sequence[Arg]) -> Tensors | str:
        """The fp64 truth for exactly these (low-precision) inputs, on the CPU; text when the
        reference refuses them."""
        key = digest(args)
        if key not in self._golden:
            remember(self._golden, key, self.compute_golden(args))
        return self._golden[key]

    def compute_golden(self, args: Sequence[Arg]) -> Tensors | str:
        """``golden``, computed anew."""
        try:
            with torch.no_grad():
                return as_tuple(self.reference(*(_upcast(arg) for arg in args)))
        except Exception as error:  # noqa: BLE001 - a reference may refuse (an empty axis, say)
            return f"{type(error).__name__}: {error}"

    def sensitivity(self, args: Sequence[Arg]) -> tuple[float, ...]:
        """How far each output's golden moves when every real input value is off by 2**-20 of
        itself, the most of several draws: what sixteen fp32 roundings may do, and no fp32
        computation of a short sum can be blamed for; and golden's own rounding, for a cancellation
        in the reference (1 + tanh) may leave exactly nothing where a better kernel has 1e-16.
        Infinity where the reference refuses."""
        moves = [self._move(args, draw) for draw in range(NUDGES)]
        own = OWN_ROUNDING * min(_greatest(args), ORDINARY_SIZE)
        return tuple(max(of_output) + own for of_output in zip(*moves, strict=True))

    def _move(self, args: Sequence[Arg], draw: int) -> tuple[float, ...]:
        truth = self.golden(args)
        moved = self.golden([_nudged(arg, draw, place) for place, arg in enumerate(args)])
        if isinstance(truth, str) or isinstance(moved, str):
            return tuple(float("inf") for _ in self.contract.outputs)
        return tuple(greatest_move(a, b) for a, b in zip(truth, moved, strict=True))

    def new_eager(self) -> Eager:
        """Eager as a subject of its own."""
        tf32 = self.contract.behaviour.allow_tf32
        return Eager(self.reference, self.device, allow_tf32=tf32)

    def eager(self, args: Sequence[Arg]) -> Reply:
        """Eager's reply for contiguous copies of these inputs (remembered)."""
        key = digest(args)
        if key not in self._eager:
            plain = [a.contiguous() if isinstance(a, torch.Tensor) else a for a in args]
            remember(self._eager, key, self.new_eager().call(plain))
        return self._eager[key]

    # --- judging one reply

    def rule(self, dtype: str) -> Rule:
        return Rule(self.rule_factor, self.contract.tolerances.get(dtype))

    def results(self, case: CaseRecord, args: Sequence[Arg], reply: Reply) -> Tensors | Finding:
        """The contract's outputs from a reply, in-place ones read from their inputs; a Finding when
        the reply has none, or has the wrong number, shape, dtype or device of them.

        Refusals (an exception of the kernel's own) are failures here; gates in which refusing is
        allowed ask ``refused`` first.
        """
        if not reply.returned:
            return self.explain(reply)
        outputs = self.collect(args, reply)
        expected = self.contract.outputs
        if outputs is None:
            return failed(
                f"returned {len(reply.outputs)} outputs, the contract has {len(expected)}"
            )
        for output, tensor in zip(expected, outputs, strict=True):
            problem = self._misfit(case, output, tensor)
            if problem:
                return failed(problem)
        kinds = {info.device.partition(":")[0] for info in reply.infos} - {self.device.type}
        return (
            failed(f"an output is on {kinds.pop()}, not on {self.device.type}")
            if kinds
            else outputs
        )

    def formed(self, case: CaseRecord, args: Sequence[Arg], reply: Reply) -> Tensors | Finding:
        """``results`` for gates that ask about something else than form: there a refusal, or an
        output of the wrong shape or dtype, is NOT_APPLICABLE, for other gates judge it."""
        outputs = self.refused(reply, case) or self.results(case, args, reply)
        if isinstance(outputs, Finding) and outputs.failed and reply.returned:
            return not_applicable(f"{outputs.detail}: gates 1, 4 and 5 judge that")
        return outputs

    def collect(self, args: Sequence[Arg], reply: Reply) -> Tensors | None:
        """All outputs of the contract: those returned, and those that lie in an input which the op
        changes in place; None when the number fits neither way."""
        expected = self.contract.outputs
        if len(reply.outputs) == len(expected):
            return reply.outputs
        if len(reply.outputs) != sum(out.in_place_of is None for out in expected):
            return None
        returned = iter(reply.outputs)
        return tuple(
            next(returned)
            if output.in_place_of is None
            else self.after(args, reply, self.position(output.in_place_of))
            for output in expected
        )

    def after(self, args: Sequence[Arg], reply: Reply, position: int) -> torch.Tensor:
        """A tensor argument as the call left it."""
        arg, storage = args[position], reply.inputs_after[position]
        assert isinstance(arg, torch.Tensor) and storage is not None  # noqa: S101, PT018
        blank = torch.empty(0, dtype=arg.dtype)
        view = blank.set_(storage.untyped_storage(), arg.storage_offset(), arg.shape, arg.stride())
        return view.contiguous()

    def _misfit(self, case: CaseRecord, output: Output, tensor: torch.Tensor) -> str | None:
        shape = self.contract.shape(output, case.dims)
        dtype = torch_dtype(self.contract.dtype(output, case.dtypes))
        if tuple(tensor.shape) != shape:
            return f"{output.name} has shape {list(tensor.shape)}, not {list(shape)}"
        if tensor.dtype != dtype:
            return f"{output.name} is {str(tensor.dtype)[6:]}, not {str(dtype)[6:]}"
        return None

    def explain(self, reply: Reply) -> Finding:
        """The finding for a reply that did not return."""
        if reply.kind is ReplyKind.UNSUPPORTED:
            # A kernel that chooses what is judged of it must not be accepted for the rest.
            return (inconclusive if reply.chosen else not_applicable)(reply.detail)
        words = {
            ReplyKind.RAISED: "raised",
            ReplyKind.LOAD_FAILED: "could not be loaded:",
            ReplyKind.BAD_OUTPUT: "returned no usable output:",
            ReplyKind.CRASHED: "crashed:",
            ReplyKind.TIMED_OUT: "timed out:",
            ReplyKind.MEMORY: "ran out of its memory:",
        }
        return failed(f"the kernel {words[reply.kind]} {reply.detail}")

    def refused(self, reply: Reply, case: CaseRecord | None = None) -> Finding | None:
        """NOT_APPLICABLE(refused) when the kernel raised an exception of its own, else None. With
        ``case`` the finding says at which sizes, so that what was asked is asked elsewhere."""
        if reply.kind is ReplyKind.RAISED:
            finding = not_applicable(f"refused: {reply.detail.splitlines()[0][:120]}")
            return replace(finding, refused_at=case.dims if case else None)
        return None

    def refused_values(self, case: CaseRecord, reply: Reply, subject: Subject) -> Finding | None:
        """As ``refused``, for cases of special values: FAIL where the subject takes ordinary ones
        of the same sizes and dtypes, in this process or in a fresh one."""
        refused = self.refused(reply, case)
        if refused is None:
            return None
        plain = replace(case, fill="normal", seed=derive_seed(case.seed, "ordinary"))
        known = f"{subject.name} {sorted(case.dims.items())} {sorted(case.dtypes.items())}"
        for fresh in (False, True)[: 1 if known in self._refused else 2]:
            if fresh:
                subject.restart()
            ordinary = subject.call(self.args(plain))
            if ordinary.returned:
                words = reply.detail.splitlines()[0][:120]
                return failed(f"takes ordinary values of this shape and refuses these: {words}")
        self._refused.add(known)
        return refused

    def compare(
        self, case: CaseRecord, args: Sequence[Arg], outputs: Tensors, *, widen: float = 1.0
    ) -> Finding:
        """The comparator over all outputs against golden and eager for these inputs; every
        allowance is multiplied by ``widen``.

        A sum with few outputs can leave eager exact by luck, and the order of an honest kernel's
        additions then looks like an error. So what the plain rule rejects is heard again with what
        fp32 roundings of the inputs alone would move, and what adding in turn may lose.
        """
        golden, eager = self.golden(args), self.eager(args)
        if isinstance(golden, str):
            return not_applicable(f"the reference refuses this input: {golden}")
        if not eager.returned:
            return not_applicable(f"eager refuses this input: {eager.detail}")
        rules = [
            replace(self.rule(self.contract.dtype(out, case.dtypes)), widen=widen)
            for out in self.contract.outputs
        ]
        finding = _check_all(self.contract, rules, golden, eager.outputs, outputs)
        if not finding.failed or finding.hard:
            return finding
        spares = self._spares(case, args, golden)
        heard = [replace(rule, spare=spare) for rule, spare in zip(rules, spares, strict=True)]
        return _check_all(self.contract, heard, golden, eager.outputs, outputs)

    def _spares(self, case: CaseRecord, args: Sequence[Arg], golden: Tensors) -> Iterator[float]:
        rows = zip(self.contract.outputs, golden, self.sensitivity(args), strict=True)
        for output, truth, move in rows:
            in_turn = self.in_turn(case, output) * FP32_UNIT * _greatest([truth])
            yield in_turn + (move if isfinite(move) else 0.0)

    def in_turn(self, case: CaseRecord, output: Output) -> float:
        """Units in the last place of an output that an honest sum may lose which adds its terms in
        turn, where eager adds in pairs: about the root of their number, of which twice is rarely
        passed (N. Higham, T. Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J.
        Sci. Comput. 41(5), 2019). 0 for an output that the contract says is no sum."""
        reductions = self.contract.behaviour.reductions
        dims = {each.dim for each in reductions if each.output == output.name}
        return 2 * sqrt(prod(case.dims[dim] for dim in dims)) if dims else 0.0

    def check(
        self,
        case: CaseRecord,
        args: Sequence[Arg],
        subject: Subject,
        options: CallOptions = ORDINARY,
    ) -> Finding:
        """Call the subject and compare: the whole ordinary judgement of one case."""
        reply = subject.call(args, options)
        outputs = self.results(case, args, reply)
        if isinstance(outputs, Finding):
            return outputs
        return self.compare(case, args, outputs)


def _check_all(
    contract: Contract, rules: Sequence[Rule], golden: Tensors, eager: Tensors, outputs: Tensors
) -> Finding:
    trials = zip(contract.outputs, rules, golden, eager, outputs, strict=True)
    return worst(
        [check_output(out.name, gold, ref, got, rule) for out, rule, gold, ref, got in trials]
    )


def _nudged(arg: Arg, draw: int, place: int) -> Arg:
    """A float tensor in fp64, each value times 1 + 2**-20 or 1 - 2**-20."""
    if not isinstance(arg, torch.Tensor) or not arg.is_floating_point():
        return arg
    words = Stream(draw, "nudge", place).words(arg.numel()) >> np.uint64(63)
    signs = torch.from_numpy(words.astype(np.float64)).reshape(arg.shape) * 2 - 1
    return arg.double() * (1 + signs * 2.0**-20)


def _greatest(args: Sequence[Arg]) -> float:
    """The greatest finite magnitude among the float arguments; 0 without any."""
    floats = [a.abs() for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    return max((float(a[a.isfinite()].max()) for a in floats if a.isfinite().any()), default=0.0)


def greatest_move(before: torch.Tensor, after: torch.Tensor) -> float:
    """The greatest finite difference; 0 for integers, whose moves are no rounding."""
    if not (before.is_floating_point() or before.is_complex()):
        return 0.0
    moves = (after - before).abs()
    finite = moves[moves.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0


def _product(shape: Sequence[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def remember(cache: OrderedDict[str, Any], key: str, value: Any, most: int = _CACHE_SIZE) -> None:
    cache[key] = value
    if len(cache) > most:
        cache.popitem(last=False)
