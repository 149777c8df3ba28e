"""G9, memory hygiene: a kernel writes all of its outputs, nothing else, and reads only its inputs.

The same call three times: fresh allocations hold NaN, then 2**100, then the greatest integer, and
so do the guard zones around every input and allocation. Results must be bitwise the same, so that
nothing unwritten and nothing out of bounds had a say, and every guard zone must be as it was. Sizes
are around the tiles of the kernel, where masks are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from verifier.gate import Finding, failed, inconclusive, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo
from verifier.referee.bench import ROWS, Bench, Tensors
from verifier.referee.compare import bitwise, check_classes, worst
from verifier.subject import Arg, CallOptions, Poison, Reply, Subject

SANITIZER: Final = "by guards and values; --deep adds compute-sanitizer"
STAGES: Final = (Poison.NAN, Poison.BIG, Poison.INT_MAX)
TAILS: Final = {DeviceMode.CPU_INTERPRET: 2, DeviceMode.CUDA: 8}
"""Assignments of odd sizes tried besides the small one."""


def _odd_sizes(bench: Bench, dim: str) -> Iterator[int]:
    """Just past each tile size, just short of it, then an odd candidate, then one. Along rows, of
    which each costs the interpreter a program, no more than are needed for an odd number."""
    candidates = bench.contract.dims[dim].candidates
    odd = sorted((n for n in candidates if n % 2 and n > 1), reverse=True)
    tiles = [tile + 1 for tile in bench.constants] + [tile - 1 for tile in bench.constants]
    sizes = [*tiles, *odd, 1]
    yield from (n for n in sizes if n < ROWS) if dim in bench.dear_dims else sizes


def _tails(bench: Bench) -> Iterator[dict[str, int]]:
    """Assignments that the contract allows with every dim at its n-th odd size."""
    small = bench.small_dims()
    options = {dim: list(_fitting(bench, small, dim)) for dim in small}
    for turn in range(max(map(len, options.values()), default=0)):
        dims = {dim: sizes[turn % len(sizes)] for dim, sizes in options.items()}
        if bench.contract.allows(dims) and bench.elements(dims) <= bench.budget:
            yield dims
    for dim, sizes in options.items():
        yield from ({**small, dim: size} for size in sizes[:2])


def _fitting(bench: Bench, small: dict[str, int], dim: str) -> Iterator[int]:
    fits = (
        size
        for size in dict.fromkeys((*_odd_sizes(bench, dim), small[dim]))
        if bench.contract.allows({**small, dim: size})
        and bench.elements({**small, dim: size}) <= bench.budget
    )
    yield from fits


class Memory:
    info = GateInfo(
        GateId.MEMORY,
        "Memory hygiene",
        "writes all of its outputs and nothing else, and reads only its inputs",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        return None

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        yield bench.case(GateId.MEMORY, "small")
        if bench.contract.behaviour.fixed_shape:
            return
        seen = [bench.small_dims()]
        for dims in _tails(bench):
            if dims not in seen and len(seen) <= TAILS[bench.mode]:
                seen.append(dims)
                sizes = "-".join(f"{name}{size}" for name, size in dims.items())
                yield bench.case(GateId.MEMORY, f"tail-{sizes}", dims=dims)

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        args = bench.args(case)
        results: list[Tensors] = []
        for poison in STAGES:
            outcome = self._call(bench, case, args, subject, CallOptions(poison, guard=poison))
            if isinstance(outcome, Finding):
                return outcome
            results.append(outcome)
        if bench.contract.behaviour.random:
            return passed("guards intact; values of a random op are not compared")
        for poison, other in zip(STAGES[1:], results[1:], strict=True):
            what = "unwritten or foreign memory reaches the result"
            finding = _compare(bench, results[0], other, what)
            if finding.failed:
                repeatable, finding = self._attribute(bench, case, args, subject, finding, poison)
                return finding if repeatable else _one_by_one(bench, case, args, results)
        contaminated = self._contaminated(bench, args, results[0])
        return contaminated or passed(SANITIZER if bench.mode is DeviceMode.CUDA else "")

    def _contaminated(self, bench: Bench, args: Sequence[Arg], outputs: Tensors) -> Finding | None:
        """NaN under every poison, because each of them overflows on its way: still an answer that
        ordinary inputs do not explain."""
        golden, eager = bench.golden(args), bench.eager(args)
        if isinstance(golden, str) or not eager.returned:
            return None
        rows = zip(bench.contract.outputs, golden, eager.outputs, outputs, strict=True)
        finding = worst([check_classes(out.name, *tensors) for out, *tensors in rows])
        if finding.passed:
            return None
        return replace(finding, detail=f"memory of another's reaches the result: {finding.detail}")

    def _call(
        self,
        bench: Bench,
        case: CaseRecord,
        args: Sequence[Arg],
        subject: Subject,
        options: CallOptions,
    ) -> Tensors | Finding:
        reply = subject.call(args, options)
        touched = self.in_passing(bench, args, reply)
        return touched or bench.formed(case, args, reply)

    def in_passing(self, bench: Bench, args: Sequence[Arg], reply: Reply) -> Finding | None:
        """In whatever call: what lies around its memory is as it was, and out of its reach."""
        if reply.touched_guards:
            zones = "; ".join(reply.touched_guards[:3])
            return failed(f"wrote outside of its memory: {zones}")
        if reply.far:
            return failed(f"reaches outside of its memory: {'; '.join(reply.far[:3])}")
        return None

    def _attribute(
        self,
        bench: Bench,
        case: CaseRecord,
        args: Sequence[Arg],
        subject: Subject,
        finding: Finding,
        poison: Poison,
    ) -> tuple[bool, Finding]:
        """Whether the kernel repeats itself at all, and which memory had a say: what lies beyond
        the inputs and allocations, or what the allocations held."""
        first, again, guarded = (
            self._call(bench, case, args, subject, CallOptions(poison, guard=guard))
            for guard in (poison, poison, Poison.NAN)
        )
        if isinstance(first, Finding) or isinstance(again, Finding) or isinstance(guarded, Finding):
            return True, finding
        if _compare(bench, first, again, "").failed:
            return False, finding
        what = f"memory beyond its own reaches the result (guards of {poison} for nan)"
        by_guard = _compare(bench, guarded, first, what)
        return True, by_guard if by_guard.failed else finding


def _one_by_one(
    bench: Bench, case: CaseRecord, args: Sequence[Arg], results: Sequence[Tensors]
) -> Finding:
    """A kernel that does not repeat itself: right under every poison is right enough here."""
    judged = worst([bench.compare(case, args, outputs) for outputs in results])
    if judged.passed:
        return passed("not repeatable (gate 3 decides), but right whatever memory held")
    return inconclusive("not repeatable (gate 3 decides), so memory cannot be told from chance")


def _compare(bench: Bench, left: Tensors, right: Tensors, what: str) -> Finding:
    outputs = zip(bench.contract.outputs, left, right, strict=True)
    return worst([bitwise(out.name, a, b, what) for out, a, b in outputs])


GATE = Memory()
