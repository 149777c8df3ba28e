"""G8, side effects and aliasing: nothing changes but the declared outputs, and they alias nothing.

In a fresh process, two calls with different data. After each: inputs byte for byte as they were,
no global state changed, outputs in memory of their own. After the second: the outputs of the
first still as they were. Always with a float32 case, because a cast to the dtype that a tensor
already has copies nothing. Fresh, because a flag that the import or an earlier call left behind is
no change any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from verifier.contract import Contract, Output
from verifier.gate import Finding, failed, passed
from verifier.records import CaseRecord, GateId, GateInfo
from verifier.referee.bench import Bench
from verifier.referee.compare import bitwise
from verifier.referee.generator import derive_seed
from verifier.subject import ORDINARY, Arg, CallOptions, OutputInfo, Reply, Subject


@dataclass(frozen=True, slots=True)
class _Call:
    """One call and what eager does with the same arguments (a view op's aliases are its right)."""

    bench: Bench
    args: Sequence[Arg]
    reply: Reply

    @property
    def contract(self) -> Contract:
        return self.bench.contract

    def returned(self) -> Iterator[tuple[Output, OutputInfo]]:
        """Each returned output of the contract, and what the host saw of it."""
        expected = list(self.contract.outputs)
        if len(self.reply.outputs) != len(expected):
            expected = [out for out in expected if out.in_place_of is None]
        yield from zip(expected, self.reply.infos, strict=False)

    def theirs(self, out: Output) -> OutputInfo | None:
        """What was seen of eager's output."""
        infos = self.bench.eager(self.args).infos
        return dict(zip(self.contract.outputs, infos, strict=False)).get(out)

    def storages_written(self) -> set[int]:
        """Of the arguments that the op may write to: another argument may lie in the same one."""
        places = (out.in_place_of for out in self.contract.outputs if out.in_place_of)
        return {_storage(self.args[self.bench.position(name)]) for name in places}


def _storage(arg: Arg) -> int:
    return arg.untyped_storage().data_ptr() if isinstance(arg, torch.Tensor) else 0


def _changed_input(call: _Call) -> Finding | None:
    written = call.storages_written()
    for name, place in (
        (item.name, call.bench.position(item.name)) for item in call.contract.inputs
    ):
        arg = call.args[place]
        if not isinstance(arg, torch.Tensor) or _storage(arg) in written:
            continue
        after = call.bench.after(call.args, call.reply, place)
        finding = bitwise(name, arg, after, "the kernel changed its input")
        if finding.failed:
            return finding
    return None


def _aliased(call: _Call) -> Finding | None:
    order = call.contract.call_order
    for out, info in call.returned():
        if not (info.alias_inputs or info.alias_outputs or info.alias_previous):
            continue
        theirs = call.theirs(out)
        allowed = set(theirs.alias_inputs) if theirs else set()
        lent = {_storage(call.args[place]) for place in allowed}  # others may be packed into it
        foreign = [n for n in info.alias_inputs if _storage(call.args[n]) not in lent]
        names = {order[place] for place in foreign} - {out.in_place_of}
        if names:
            return failed(f"output {out.name} shares memory with input {sorted(names)[0]}")
        if set(info.alias_outputs) - set(theirs.alias_outputs if theirs else ()):
            return failed(f"output {out.name} shares memory with another output of the same call")
        if info.alias_previous and not allowed and not out.in_place_of:
            return failed(f"output {out.name} lies in memory that an earlier result still holds")
    return None


def _changed_state(call: _Call, *, before: bool = True) -> Finding | None:
    """Global state that differs after the call, or with ``before`` since the process began."""
    random = call.contract.behaviour.random
    seen = dict.fromkeys((*(call.reply.effects_before if before else ()), *call.reply.effects))
    effects = [e for e in seen if not (random and e.endswith("random state"))]
    return failed(f"the call changed global state: {', '.join(effects[:5])}") if effects else None


def _overwritten(first: _Call, second: _Call) -> Finding | None:
    """The second call wrote into what the first had returned. Outputs that may lie in an argument's
    memory are not looked at: there the caller's own memory was used again."""
    pairs = zip(first.returned(), first.reply.outputs, second.reply.previous_outputs, strict=False)
    for (out, _), before, after in pairs:
        finding = bitwise(out.name, before, after, "a later call changed an earlier output")
        theirs = first.theirs(out) if finding.failed and out.in_place_of is None else None
        if finding.failed and out.in_place_of is None and not (theirs and theirs.alias_inputs):
            return finding
    return None


class SideEffects:
    info = GateInfo(
        GateId.SIDE_EFFECTS,
        "Side effects",
        "nothing changes except the declared outputs, and they share memory with nothing",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        return None

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        usual = bench.contract.usual_dtypes()
        yield bench.case(GateId.SIDE_EFFECTS, "usual dtypes", dtypes=usual)
        for dtypes in bench.contract.dtype_assignments():
            if set(dtypes.values()) == {"float32"} and dtypes != usual:
                yield bench.case(GateId.SIDE_EFFECTS, "float32", dtypes=dtypes)

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Two calls. What earlier calls changed is held against it, too, if a fresh process shows
        the same: so the process need not be fresh where nothing is found."""
        finding = self._two_calls(bench, case, subject)
        if finding.passed:
            return finding
        subject.restart()
        return self._two_calls(bench, case, subject)

    def in_passing(self, bench: Bench, args: Sequence[Arg], reply: Reply) -> Finding | None:
        """In whatever call: inputs unchanged, outputs of their own, no global state changed."""
        call = _Call(bench, args, reply)
        return _changed_input(call) or _aliased(call) or _changed_state(call, before=False)

    def _two_calls(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        first = self._call(bench, case, subject, ORDINARY)
        if isinstance(first, Finding):
            return first
        other = replace(case, seed=derive_seed(case.seed, "second"))
        second = self._call(bench, other, subject, CallOptions(recheck_previous=True))
        if isinstance(second, Finding):
            return second
        return _overwritten(first, second) or passed()

    def _call(
        self, bench: Bench, case: CaseRecord, subject: Subject, options: CallOptions
    ) -> _Call | Finding:
        args = bench.args(case)
        reply = subject.call(args, options)
        if not reply.returned:
            return bench.refused(reply, case) or bench.explain(reply)
        call = _Call(bench, args, reply)
        return _changed_input(call) or _aliased(call) or _changed_state(call) or call


GATE = SideEffects()
