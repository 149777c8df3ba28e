"""G12, honest execution: the submitted kernel did the work, now, on the data that it was given.

Looked at: what it launches, which torch operations it leans on, what remains when its launches are
switched off, whether answers follow the data when one element changes at the same address, whether
seen data is worked on again, whether later calls are as right as the first, and on a GPU a call on
another stream.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from verifier.contract import DomainKind, Tolerance
from verifier.gate import Finding, failed, inconclusive, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo, GateStatus, Language
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import (
    Rule,
    allowance,
    bitwise_differs,
    check_output,
    point_out,
    worst,
)
from verifier.referee.generator import Stream, derive_seed
from verifier.referee.inputs import torch_dtype
from verifier.referee.moved import after_launches, before_launches, is_telling, lies_in
from verifier.referee.paths import other_paths
from verifier.referee.provenance import Element, Known, UncomparableError, foreign_values
from verifier.referee.timed import timed
from verifier.referee.trace import Origin, Trace
from verifier.referee.uses import Uses, uses_of
from verifier.subject import (
    BOOKKEEPING,
    ON_INTEGERS,
    PLUMBING,
    Arg,
    CallOptions,
    Placement,
    Poison,
    Reply,
    ReplyKind,
    Subject,
    Watched,
)

MOVING: Final = frozenset({"copy_", "_to_copy", "clone", "cat", "stack", "repeat"})
"""Those of the plumbing that put data elsewhere."""

CALLS: Final = {DeviceMode.CPU_INTERPRET: 6, DeviceMode.CUDA: 48}
ROWS: Final = 4
CHANGES: Final = ("one element", "the first element", "the last element", "two exchanged")
TRACED: Final = CallOptions(trace=True)
STAGED: Final = CallOptions(trace=True, below=True)
WATCHED: Final = CallOptions(trace=True, watch=True)
WATCHES: Final = 2
ROUTINE: Final = (24, 64)
"""How many calls a fresh process makes before the watched ones: no kernel knows."""
MAX_WATCHES: Final = 6
"""How many single changes are followed, at least, and at most for the sake of further inputs."""

UNSEEN: Final = "it launches more than can be watched, or with what cannot be seen through"
TRIES: Final = 8
"""How many elements are tried until one makes a difference."""
PERMITTED: Final = "library composition: the task permits library calls"


def _misbehaved(reply: Reply) -> Finding | None:
    """Outputs that are no plain tensors, patched functions, threads that go on working."""
    if not all(info.exact_tensor for info in reply.infos):
        return failed("an output is no plain torch.Tensor with a storage of its own")
    for effect in reply.effects:
        if effect.startswith("patched") or effect.endswith("threads"):
            return failed(f"the call tampers with its surroundings: {effect}")
    return None


def _foreign(bench: Bench, reply: Reply) -> list[str]:
    """Torch operations in the reply that compute something."""
    if not reply.ops:  # as in most of all calls
        return []
    allowed = set(PLUMBING)
    if _takes_integers(bench):
        own = _uses(bench).bookkeeping if _gives_integers(bench) else frozenset()
        allowed |= {name + ON_INTEGERS for name in BOOKKEEPING - own}
    names = dict.fromkeys(op.removeprefix("aten::") for op in reply.ops)
    return [name for name in names if name not in allowed]


def _uses(bench: Bench) -> Uses:
    """The operations that the reference is made of: where they are the op, nothing excuses them."""
    return uses_of(bench.reference, lambda: bench.args(bench.case(GateId.HONEST, "uses")))


def _gives_integers(bench: Bench) -> bool:
    dtypes = bench.contract.usual_dtypes()
    kinds = (torch_dtype(bench.contract.dtype(out, dtypes)) for out in bench.contract.outputs)
    return not any(kind.is_floating_point or kind.is_complex for kind in kinds)


def _by_torch(bench: Bench, reply: Reply) -> Finding | None:
    """What torch computes for the kernel, in sight or out of it."""
    foreign = _foreign(bench, reply)
    if foreign:
        return failed(f"torch computes for it: {', '.join(foreign[:5])}")
    hidden = [name.removeprefix("aten::") for name in reply.hidden or ()]
    if hidden:
        return failed(f"torch computes where it cannot be seen: {', '.join(hidden[:5])}")
    return None


def _is_empty(values: Iterable[Arg]) -> bool:
    return any(isinstance(value, torch.Tensor) and not value.numel() for value in values)


def _get(
    bench: Bench, case: CaseRecord, args: Sequence[Arg], subject: Subject, options: CallOptions
) -> tuple[Reply, Tensors] | Finding:
    reply = subject.call(args, options)
    outputs = _misbehaved(reply) or bench.formed(case, args, reply)
    return outputs if isinstance(outputs, Finding) else (reply, outputs)


# --- the kernel's own work


def work(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """It launches a kernel of its own, and torch computes nothing for it."""
    if bench.contract.behaviour.library_calls:
        return not_applicable(PERMITTED)
    got = _traced(bench, case, subject)
    if isinstance(got, Finding):
        return got
    reply, _ = got
    computed = _by_torch(bench, reply)
    if computed:
        return computed
    trace = Trace(reply.kernels, frozenset(reply.launches))
    others = trace.of(Origin.LIBRARY, Origin.COMPILED)
    if others:
        share = trace.share(Origin.LIBRARY, Origin.COMPILED)
        return failed(f"a library computes for it, {share:.0%} of the time: {others[0].name}")
    if not reply.launches and not trace.of(Origin.OWN):
        return _nothing_launched(bench, reply)
    if reply.kernels and not trace.of(Origin.OWN):
        return failed(f"none of its own kernels runs: {trace}")
    moved = _moved(bench, case, subject, reply)
    return moved or passed(str(trace) if reply.kernels else "")


def _traced(bench: Bench, case: CaseRecord, subject: Subject) -> tuple[Reply, Tensors] | Finding:
    """Where no launch is seen on a GPU, its profiler is asked: it sees what a graph replays."""
    options = replace(TRACED, profile=_to_be_profiled(bench, case), below=True)
    got = _get(bench, case, bench.args(case), subject, options)
    if isinstance(got, Finding) or got[0].launches or options.profile:
        return got
    if bench.mode is DeviceMode.CPU_INTERPRET:
        return got
    return _get(bench, case, bench.args(case), subject, replace(options, profile=True))


def _moved(bench: Bench, case: CaseRecord, subject: Subject, seen: Reply) -> Finding | None:
    """Where the op only moves data, moving is no plumbing: the answer is nowhere before a launch of
    the kernel's makes it, and nobody else makes it afterwards."""
    args = bench.args(case)
    golden = bench.golden(args)
    if _uses(bench).computes or isinstance(golden, str):
        return None
    watched = subject.call(args, WATCHED)
    if watched.watch_full or not (watched.returned and watched.launches):
        return None  # provenance says what becomes of that
    given = [arg for arg in args if isinstance(arg, torch.Tensor)]
    for out, truth in zip(bench.contract.outputs, golden, strict=True):
        answer = truth.to(torch_dtype(bench.contract.dtype(out, case.dtypes)))
        if is_telling(answer):
            finding = _moved_one(bench, answer, given, seen, watched)
            if finding:
                return finding
    return None


def _moved_one(
    bench: Bench, answer: torch.Tensor, given: Sequence[torch.Tensor], seen: Reply, watched: Reply
) -> Finding | None:
    if lies_in(answer, given):  # a copy, or a part: what else moves it can be told by name alone
        names = {op.removeprefix("aten::").partition(" ")[0] for op in seen.ops}
        own = sorted(names & MOVING & _uses(bench).plumbing)
        return failed(f"torch does what is all that the op does: {', '.join(own)}") if own else None
    early = before_launches(answer, watched)
    if early is not None:
        return failed(f"launch {early + 1} is handed the answer, and no launch has made it")
    if not after_launches(answer, watched):
        return failed("the answer is put together after its last launch")
    return None


def _to_be_profiled(bench: Bench, case: CaseRecord) -> bool:
    """On a GPU, once; and wherever nobody but its profiler sees what is launched."""
    told = bench.language is Language.TRITON
    return bench.mode is DeviceMode.CUDA and (case.params.get("profile") is True or not told)


def _nothing_launched(bench: Bench, reply: Reply) -> Finding:
    """What it means, by where it runs: no language excuses it but numpy on the CPU, where there is
    nothing else to launch, and CUDA sources where no profiler works."""
    if bench.mode is DeviceMode.CPU_INTERPRET and bench.language is Language.NUMPY:
        if reply.hidden is None:
            return inconclusive("whether torch computes for numpy cannot be seen here")
        return not_applicable("numpy works on the CPU, where no launch can be seen")
    unseen = bench.mode is DeviceMode.CUDA and bench.language is Language.CUDA
    if unseen and not reply.kernels:
        return inconclusive(
            "launches of CUDA sources are seen by the device's profiler alone, and it saw nothing"
        )
    return failed("it launches no kernel")


def unwatched(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """It does the same where nothing tells it that somebody looks: launches as it does under the
    stage, lets torch compute nothing there, and is right."""
    if bench.contract.behaviour.library_calls:
        return not_applicable(PERMITTED)
    args = bench.args(case)
    bare = CallOptions(bare=True, below=True)
    calls = [_get(bench, case, args, subject, how) for how in (STAGED, bare, STAGED)]
    for call in calls:
        if isinstance(call, Finding):
            return call
    (first, _), (alone, outputs), (again, _) = (c for c in calls if not isinstance(c, Finding))
    if alone.hidden is None:
        return not_applicable("torch's profiler does not work here")
    more = set(alone.hidden) - {*first.met, *again.met}
    if more:
        names = ", ".join(sorted(name.removeprefix("aten::") for name in more)[:5])
        return failed(f"where nobody seems to look, torch computes for it: {names}")
    if Counter(alone.launches) not in (Counter(first.launches), Counter(again.launches)):
        return failed("where nobody seems to look, it launches otherwise")
    wrong = _plainly_wrong(bench, case, args, outputs)
    if wrong and not bench.contract.behaviour.random:
        return replace(wrong, detail=f"where nobody seems to look: {wrong.detail}")
    return passed()


def compiles(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """Triton's compiler takes what it launches, and that is what its interpreter runs, which takes
    any Python in a kernel."""
    dry, ran, compiled = _three_ways(bench, case, subject)
    if compiled.refused and not _some_taken(compiled):
        return failed(f"Triton's compiler refuses {compiled.refused[0]}")
    if ran.returned and not ran.launches:
        return not_applicable("nothing that could be compiled was seen: it launches nothing")
    if not ran.returned or (compiled.kind is ReplyKind.UNSUPPORTED and not compiled.chosen):
        if _some_taken(compiled):
            return passed("Triton's compiler takes it")
        reason = compiled.detail or "it launches nothing"
        return not_applicable(f"nothing that could be compiled was seen: {reason}")
    finding = _same_program(bench, dry, ran, compiled)
    if finding.passed:
        return finding
    subject.restart()  # what one process has kept from earlier calls, the other may not have
    finding = _same_program(bench, *_three_ways(bench, case, subject))
    subject.restart()  # and what it keeps of a call without launches is nothing to go on with
    return finding


def _three_ways(bench: Bench, case: CaseRecord, subject: Subject) -> tuple[Reply, Reply, Reply]:
    """The same call without its launches, as it is, and, if it launches, compiled without them."""
    args, bare = bench.args(case), CallOptions(programs=True, trace=True, poison=Poison.BIG)
    dry = subject.call(args, replace(bare, ablate=True))
    ran = subject.call(args, replace(TRACED, programs=True))
    if ran.returned and not ran.launches:
        return dry, ran, Reply(ReplyKind.UNSUPPORTED)
    return dry, ran, subject.call(args, replace(bare, compile=True))


def _some_taken(compiled: Reply) -> bool:
    return compiled.returned and len(compiled.launches) > len(compiled.refused)


def _same_program(bench: Bench, dry: Reply, ran: Reply, compiled: Reply) -> Finding:
    """Whether what ran is what was compiled. Until the first launch would have left something, a
    call without launches goes the way of the compiler's: if not, it knows who runs it."""
    missing = _programs_missing(ran, compiled)
    where = "where Triton's compiler would run it"
    if not missing:
        like = dry if dry.tuned == compiled.tuned else ran  # a tuner passes over what does not fit
        other = not bench.contract.behaviour.random and _settings_missing(like, compiled)
        if other:
            return inconclusive(f"other values are handed to {other[0]} {where}")
        return passed("Triton's compiler takes it")
    refused = [text for text in compiled.refused if text.startswith(f"{missing[0]}: ")]
    if refused:
        return failed(f"Triton's compiler refuses {refused[0]}")
    if compiled.returned and _programs_missing(dry, compiled):
        return failed(f"another program is launched {where} than {missing[0]}")
    if compiled.deliberate and dry.returned:
        return failed(f"it raises {where}: {compiled.detail}")
    how = f": {compiled.detail}" if compiled.detail else ""
    return inconclusive(f"{missing[0]} is not launched {where}{how}")


def _programs_missing(one: Reply, other: Reply) -> list[str]:
    """The kernels whose code was launched in one call and not in the other."""
    there = {program.code for program in other.programs}
    return [program.kernel for program in one.programs if program.code not in there]


def _settings_missing(one: Reply, other: Reply) -> list[str]:
    there = {(program.code, program.settings) for program in other.programs}
    told = [program for program in one.programs if (program.code, program.settings) not in there]
    return [program.kernel for program in told]


def ablation(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """With its launches switched off, the right answer does not appear."""
    if bench.contract.behaviour.library_calls:
        return not_applicable(PERMITTED)
    args = bench.args(case)
    reply = subject.call(args, CallOptions(poison=Poison.BIG, ablate=True, trace=True))
    if reply.kind is ReplyKind.UNSUPPORTED:
        return bench.explain(reply)
    if not reply.launches:
        return not_applicable("no launch that could be switched off was seen")
    if not reply.returned:
        return passed("it needs its kernels")
    outputs = bench.results(case, args, reply)
    if isinstance(outputs, Finding) or not bench.compare(case, args, outputs).passed:
        return passed("it needs its kernels")
    return failed("its kernels are for show: the right answer appears without them")


@dataclass(frozen=True, slots=True)
class Followed:
    """One size and dtype at which a changed element is followed: the data, the same but for that
    element, and other data for the call before."""

    case: CaseRecord
    other: Sequence[Arg]
    base: Sequence[Arg]
    changed: Sequence[Arg]
    element: Element


def provenance(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """What its launches are handed comes from the inputs, and its answer from its launches."""
    if bench.contract.behaviour.library_calls:
        return not_applicable(PERMITTED)
    followed = _followed(bench, case)
    routine = [bench.args(case)] * int(Stream(case.seed, "calls before").integers(*ROUTINE, 1)[0])
    followed = [one for one in followed if not _refuses(subject, one, case)]
    trip = _travelled(bench, followed, subject, None)
    if trip.finding.passed or not trip.seen:
        return trip.finding
    # What it keeps from other calls may explain it, but not if those were the same.
    trip = _travelled(bench, followed, subject, routine)
    if trip.finding.failed and not trip.steady(subject):
        return inconclusive("the same data do not always go the same way")
    return trip.finding


def _refuses(subject: Subject, one: Followed, case: CaseRecord) -> bool:
    """Whether it takes no data of this size, which nobody has named."""
    drawn = dict(one.case.dims) in case.params["drawn"]
    return drawn and subject.call(one.other).kind is ReplyKind.RAISED


@dataclass(frozen=True, slots=True)
class Trip:
    """Two journeys that differ in one element at each stop, and what they show."""

    followed: Sequence[Followed]
    after: Sequence[Reply]
    routine: Sequence[Sequence[Arg]] | None
    finding: Finding

    @property
    def seen(self) -> bool:
        """Whether there was anything to see."""
        return bool(self.after)

    def steady(self, subject: Subject) -> bool:
        """Whether the same data go the same way again: else nothing can be said of others."""
        changed = [one.changed for one in self.followed]
        again = _journey(subject, self.followed, changed, self.routine)
        return _compare(self.followed, self.after, again, [None] * len(again)).passed


def _travelled(
    bench: Bench,
    followed: Sequence[Followed],
    subject: Subject,
    routine: Sequence[Sequence[Arg]] | None,
) -> Trip:
    """With the base data, then with one element changed; after a routine in a fresh process each,
    or without one in the process that has answered whatever came before."""
    before = _journey(subject, followed, [one.base for one in followed], routine)
    alone = _alone(bench, followed, before)
    if alone:
        return Trip(followed, (), routine, alone)
    after = _journey(subject, followed, [one.changed for one in followed], routine)
    finding = _compare(followed, before, after, [one.element for one in followed])
    return Trip(followed, after, routine, finding)


def _alone(bench: Bench, followed: Sequence[Followed], replies: Sequence[Reply]) -> Finding | None:
    """What one journey tells by itself."""
    if any(launch.strays for reply in replies for launch in reply.watched):
        return failed("a launch is handed, or reaches, memory that is no tensor's")
    if replies and replies[0].returned and not (_launches(replies[0]) or replies[0].watch_full):
        return not_applicable("no launch that could be watched was seen")
    return _wrong_when_watched(bench, followed, replies)


def _launches(reply: Reply) -> list[Watched]:
    return [launch for launch in reply.watched if not launch.carries]


def _wrong_when_watched(
    bench: Bench, followed: Sequence[Followed], replies: Sequence[Reply]
) -> Finding | None:
    """An answer that nobody would take says nothing about how right ones are made."""
    for one, reply in zip(followed, replies, strict=True):
        outputs = bench.results(one.case, one.base, reply)
        if isinstance(outputs, Finding):
            continue
        wrong = _plainly_wrong(bench, one.case, one.base, outputs)
        if wrong:
            return inconclusive(f"its answer is wrong here: {wrong.detail} ({_where(one.case)})")
    return None


def _followed(bench: Bench, case: CaseRecord) -> list[Followed]:
    """What to follow: each size at least once, and each real input, as far as something shows."""
    sizes = [case] + [replace(case, dims=at[0], dtypes=at[1]) for at in case.params["elsewhere"]]
    sizes = [size for size in sizes if not bench.cannot_judge(size)]
    count = max(WATCHES, len(sizes), min(len(_followable(bench, bench.args(case))), MAX_WATCHES))
    found = (_follow(bench, sizes[number % len(sizes)], number) for number in range(count))
    return [one for one in found if one]


def _journey(
    subject: Subject,
    followed: Sequence[Followed],
    data: Sequence[Sequence[Arg]],
    routine: Sequence[Sequence[Arg]] | None,
) -> list[Reply]:
    """A watched call at each size, after one with other data at each, the same each time: so it
    has tuned itself, and what it keeps holds the same. With a routine, all calls of a process are
    the same until the watched ones, and it has seen nothing like their data before."""
    if routine is not None:
        subject.restart()
        for args in routine:
            subject.call(args)
    for one in followed:
        subject.call(one.other)
    return [subject.call(args, WATCHED) for args in data]


def _compare(
    followed: Sequence[Followed],
    before: Sequence[Reply],
    after: Sequence[Reply],
    elements: Sequence[Element | None],
) -> Finding:
    """Whether two journeys that differ in these elements show values that no launch made."""
    known = Known()
    so_far = not_applicable("no single element makes a difference here")
    for one, old, new, element in zip(followed, before, after, elements, strict=True):
        if so_far.passed and any(_is_unsupported(reply) for reply in (old, new)):
            continue  # this device cannot run it in that dtype, say
        finding = _outside(old, new, element, known)
        if so_far.passed and finding.status is GateStatus.NOT_APPLICABLE:
            finding = inconclusive(f"elsewhere it returns, and here it does not: {finding.detail}")
        if not finding.passed:  # what is known ends here
            return replace(finding, detail=f"{finding.detail} ({_where(one.case)})")
        so_far = finding
    return so_far


def _is_unsupported(reply: Reply) -> bool:
    return reply.kind is ReplyKind.UNSUPPORTED and not reply.chosen


def _where(case: CaseRecord) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in case.dims.items())
    return f"{sizes} in {'/'.join(dict.fromkeys(case.dtypes.values()))}"


def _outside(before: Reply, after: Reply, element: Element | None, known: Known) -> Finding:
    """Whether two calls that differ in one element (or in none) show values that no launch made."""
    if not (before.returned and after.returned):
        return not_applicable("it does not return here: other gates judge that")
    if before.watch_full or after.watch_full:
        return inconclusive(UNSEEN)
    if before.tuned != after.tuned:
        return inconclusive("its autotuner chose differently")
    try:
        foreign = foreign_values(before, after, element, known)
    except UncomparableError as error:
        return inconclusive(str(error))
    return failed(f"something else computes for it: {foreign}") if foreign else passed()


def _takes_integers(bench: Bench) -> bool:
    return any(item.domain.kind is not DomainKind.REAL for item in bench.contract.inputs)


def _followable(bench: Bench, args: Sequence[Arg]) -> list[int]:
    """Inputs to change an element of. Integers are changed where there is nothing else, for indices
    and offsets steer what a wrapper does."""
    full = [(n, arg) for n, arg in enumerate(args) if isinstance(arg, torch.Tensor) and arg.numel()]
    real = [place for place, arg in full if arg.is_floating_point()]
    return real or [place for place, _ in full if not _ascending(bench, place)]


def _follow(bench: Bench, case: CaseRecord, number: int) -> Followed | None:
    """An element whose change the right answer shows, and shows as more than that element moved to
    somewhere, if there is one: which of them an op passes through untouched tells nothing."""
    base, fresh = bench.args(case), _other(bench, case, "fresh")
    other = _other(bench, case, "before")
    draw = Stream(case.seed, f"provenance {number}")
    places = _followable(bench, base)
    first, moved = number % max(len(places), 1), None
    for place in places[first:] + places[:first]:
        for index in draw.integers(0, _tensor(base[place]).numel(), TRIES):
            element, changed = _replaced(base, fresh, place, int(index))
            if not _visible(bench, case, base, changed):
                continue
            found = Followed(case, other, base, changed, element)
            if _worked(bench, found):
                return found
            moved = moved or found
    return moved


def _worked(bench: Bench, one: Followed) -> bool:
    """Whether the right answer holds something else than the changed element where it changed."""
    old, new = bench.golden(one.base), bench.golden(one.changed)
    if isinstance(old, str) or isinstance(new, str):
        return False
    pairs = zip(old, new, strict=True)
    return any(bool(((a != b) & (b != one.element.new.to(b.dtype))).any()) for a, b in pairs)


def _replaced(
    base: Sequence[Arg], fresh: Sequence[Arg], place: int, index: int
) -> tuple[Element, list[Arg]]:
    arg, other = _tensor(base[place]), _tensor(fresh[place])
    flat = arg.flatten().clone()
    flat[index] = other.flatten()[index]
    changed = list(base)
    changed[place] = flat.reshape(arg.shape)
    return Element(arg.flatten()[index], flat[index]), changed


def _tensor(arg: Arg) -> torch.Tensor:
    assert isinstance(arg, torch.Tensor)  # noqa: S101 - callers pick tensors
    return arg


# --- memory of earlier calls


def _allowed(bench: Bench, case: CaseRecord, args: Sequence[Arg]) -> list[Tolerance] | None:
    """Four times what the comparator allows each output, conditioning included."""
    golden, eager = bench.golden(args), bench.eager(args)
    if isinstance(golden, str) or not eager.returned:
        return None
    allowed = []
    slacks = bench.sensitivity(args)
    for out, truth, ref, slack in zip(
        bench.contract.outputs, golden, eager.outputs, slacks, strict=True
    ):
        plain = allowance(truth, ref, ref.dtype, bench.rule(bench.contract.dtype(out, case.dtypes)))
        allowed.append(Tolerance(4 * plain.atol + slack, 4 * plain.rtol))
    return allowed


def _beyond(left: torch.Tensor, right: torch.Tensor, by: Tolerance) -> torch.Tensor:
    wide = torch.complex128 if right.is_complex() else torch.float64
    left, right = left.to(wide), right.to(wide)
    return (left - right).abs() > by.atol + by.rtol * right.abs()


def _stale(
    bench: Bench,
    case: CaseRecord,
    before: tuple[Sequence[Arg], Tensors],
    now: tuple[Sequence[Arg], Tensors],
) -> Finding | None:
    """Places that were right before, should have changed since, and did not."""
    old, new = bench.golden(before[0]), bench.golden(now[0])
    allowed = _allowed(bench, case, now[0])
    if isinstance(old, str) or isinstance(new, str) or allowed is None:
        return None
    rows = zip(bench.contract.outputs, old, new, before[1], now[1], allowed, strict=True)
    for out, was, truth, given, got, by in rows:
        frozen = _beyond(was, truth, by) & ~_beyond(given, was, by)
        frozen &= ~bitwise_differs(given, got)
        if frozen.any():
            finding = failed(f"{out.name} is what other data gave before")
            return point_out(finding, out.name, frozen, truth.to(got.dtype), got)
    return None


def _visible(bench: Bench, case: CaseRecord, one: Sequence[Arg], two: Sequence[Arg]) -> bool:
    """Whether the answers to these inputs differ too much for one answer to be right for both."""
    old, new, allowed = bench.golden(one), bench.golden(two), _allowed(bench, case, two)
    if isinstance(old, str) or isinstance(new, str) or allowed is None:
        return False
    return any(bool(_beyond(a, b, by).any()) for a, b, by in zip(old, new, allowed, strict=True))


def _alterable(bench: Bench, args: Sequence[Arg]) -> list[int]:
    """Inputs that can be changed a little."""
    return [
        place
        for place, arg in enumerate(args)
        if isinstance(arg, torch.Tensor) and arg.numel() > 1 and not _ascending(bench, place)
    ]


def _alter(
    args: Sequence[Arg], fresh: Sequence[Arg], place: int, kind: str, draw: Stream
) -> list[Arg]:
    """One element from other data, or two elements exchanged, in this input."""
    changed = list(args)
    arg, other = _tensor(args[place]), _tensor(fresh[place])
    flat = arg.flatten().clone()
    i, j = (int(index) for index in draw.integers(0, flat.numel(), 2))
    if kind == CHANGES[-1]:
        flat[[i, j]] = flat[[j, i]]
    else:
        at = {CHANGES[1]: 0, CHANGES[2]: -1}.get(kind, i)
        flat[at] = other.flatten()[at]
    changed[place] = flat.reshape(arg.shape)
    return changed


def _ascending(bench: Bench, place: int) -> bool:
    name = bench.contract.call_order[place]
    return bench.contract.input(name).domain.kind is DomainKind.OFFSETS


def _other(bench: Bench, case: CaseRecord, path: str) -> list[Arg]:
    return bench.args(replace(case, seed=derive_seed(case.seed, path)))


def _changes(bench: Bench, case: CaseRecord) -> Iterator[tuple[str, list[Arg], Placement]]:
    """Arguments to hand over one after the other, each visibly different from the one before."""
    current = bench.args(case)
    yield FIRST, current, Placement.SAME
    fresh, draw = _other(bench, case, "fresh"), Stream(case.seed, "change")
    for place, kind in itertools.product(_alterable(bench, current), CHANGES):
        for _ in range(8):
            trial = _alter(current, fresh, place, kind, draw)
            if _visible(bench, case, current, trial):
                current = trial
                yield f"{kind} in {bench.contract.call_order[place]}", current, Placement.SAME
                break
    yield UNSEEN_DATA, fresh, Placement.FRESH
    yield SEEN_DATA[0], bench.args(case), Placement.FRESH
    yield SEEN_DATA[1], bench.args(case), Placement.SAME


FIRST: Final = "first data"
UNSEEN_DATA: Final = "other data elsewhere"
SEEN_DATA: Final = ("the first data elsewhere", "the first data once more")


def _does_less(first: Counter[str], unseen: Counter[str], again: Counter[str]) -> bool:
    """Whether data seen before are launched for in another way. What only the first call of all
    needs may be missing, and how often it launches may depend on the data."""
    if again in (first, unseen):
        return False
    return not (again <= first and unseen <= again)


def memory(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """Answers follow the data, and data seen before is worked on again."""
    before: tuple[Sequence[Arg], Tensors] | None = None
    launched = False
    launches: dict[str, Counter[str]] = {}
    for what, args, placement in _changes(bench, case):
        options = CallOptions(placement=placement, trace=True)
        got = _get(bench, case, args, subject, options)
        if isinstance(got, Finding):
            return got
        reply, outputs = got
        if launched and not reply.launches:
            return failed(f"{what}: an answer without a launch, so it was remembered")
        launched = launched or bool(reply.launches)
        launches[what] = Counter(reply.launches)
        if what in SEEN_DATA and _does_less(launches[FIRST], launches[UNSEEN_DATA], launches[what]):
            return failed(f"{what}: it launches otherwise than for data that it had not seen")
        if before is not None:
            stale = _stale(bench, case, before, (args, outputs))
            if stale:
                return replace(stale, detail=f"{what}: {stale.detail}")
            if placement is Placement.FRESH and _frozen(bench, case, before, (args, outputs)):
                return failed("it answers the same whatever the data")
        before = (args, outputs)
    return passed()


def _frozen(
    bench: Bench,
    case: CaseRecord,
    before: tuple[Sequence[Arg], Tensors],
    now: tuple[Sequence[Arg], Tensors],
) -> bool:
    """Wholly other data, and not one bit of the answer changed."""
    same = not any(
        bool(bitwise_differs(a, b).any()) for a, b in zip(before[1], now[1], strict=True)
    )
    return same and _visible(bench, case, before[0], now[0])


def repeats(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """Later calls on new data are as right as the first: of this process, which has seen many, or
    if they are not, of a fresh one."""
    finding = _repeated(bench, case, subject)
    if finding.passed:
        return finding
    subject.restart()
    return _repeated(bench, case, subject)


def _repeated(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    right = False
    for number in range(CALLS[bench.mode]):
        args = _other(bench, case, f"call {number}")
        got = _get(bench, case, args, subject, CallOptions())
        if isinstance(got, Finding):
            return replace(got, detail=f"call {number + 1}: {got.detail}")
        wrong = _plainly_wrong(bench, case, args, got[1])
        if right and wrong:
            return replace(wrong, detail=f"right at first, wrong in call {number + 1}")
        right = right or not wrong
    return passed() if right else not_applicable("it is never right here: gate 1 decides")


def _plainly_wrong(
    bench: Bench, case: CaseRecord, args: Sequence[Arg], outputs: Tensors
) -> Finding | None:
    """Wrong by more than any luck in rounding explains."""
    golden, eager, allowed = bench.golden(args), bench.eager(args), _allowed(bench, case, args)
    if isinstance(golden, str) or allowed is None:
        return None
    rows = zip(bench.contract.outputs, golden, eager.outputs, outputs, allowed, strict=True)
    finding = worst(
        [
            check_output(out.name, truth, ref, got, Rule(tolerance=by))
            for out, truth, ref, got, by in rows
        ]
    )
    return finding if finding.failed else None


def stream(bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
    """Called on another stream and waited for by event alone, it is as right as ever."""
    if bench.mode is not DeviceMode.CUDA:
        return not_applicable("there are no streams without a GPU")
    args = bench.args(case)
    plain = _get(bench, case, args, subject, CallOptions())
    if isinstance(plain, Finding):
        return plain
    if _plainly_wrong(bench, case, args, plain[1]):
        return not_applicable("it is not right on the default stream: gate 1 decides")
    aside = _get(bench, case, args, subject, CallOptions(side_stream=True, poison=Poison.BIG))
    if isinstance(aside, Finding):
        return aside
    wrong = _plainly_wrong(bench, case, args, aside[1])
    return replace(wrong, detail=f"on another stream: {wrong.detail}") if wrong else passed()


CHECKS: Final[Mapping[str, Callable[[Bench, CaseRecord, Subject], Finding]]] = {
    check.__name__: check
    for check in (work, unwatched, compiles, ablation, provenance, memory, repeats, stream, timed)
}


class Honest:
    info = GateInfo(
        GateId.HONEST,
        "Honest execution",
        "the submitted kernel did the work, now, on the data that it was given",
        tolerance_free=True,
    )
    self_check = False

    def applies(self, bench: Bench) -> str | None:
        return None

    def cases(self, bench: Bench) -> Iterable[CaseRecord]:
        few = bench.small_dims(ROWS)
        yield bench.case(GateId.HONEST, "work", dims=few, check="work", profile=True)
        odd = bench.odd_dims()
        if odd != few:
            yield bench.case(GateId.HONEST, "work-odd-sizes", dims=odd, check="work", profile=False)
        for dtypes in list(bench.contract.dtype_assignments())[1:]:
            label = "-".join(("work", *dtypes.values()))
            yield bench.case(
                GateId.HONEST, label, dims=few, dtypes=dtypes, check="work", profile=False
            )
        if bench.mode is DeviceMode.CPU_INTERPRET:
            for dtypes in bench.contract.dtype_assignments():
                label = "-".join(("compiles", *dtypes.values()))
                yield bench.case(GateId.HONEST, label, dims=few, dtypes=dtypes, check="compiles")
        yield bench.case(GateId.HONEST, "unwatched", dims=few, check="unwatched")
        yield bench.case(GateId.HONEST, "ablation", dims=few, check="ablation")
        if not bench.contract.behaviour.random:
            yield bench.case(GateId.HONEST, "memory", dims=few, check="memory")
            yield bench.case(GateId.HONEST, "repeats", dims=few, check="repeats")
            yield bench.case(GateId.HONEST, "stream", dims=few, check="stream")
            # The last one, so that no kernel knows by counting when it is watched.
            drawn = self._drawn(bench)
            usual = bench.contract.usual_dtypes()
            yield bench.case(
                GateId.HONEST,
                "provenance",
                dims=few,
                check="provenance",
                elsewhere=self._elsewhere(bench, few) + [(dims, usual) for dims in drawn],
                drawn=drawn,
            )

    def _elsewhere(self, bench: Bench, few: dict[str, int]) -> list[tuple[Any, Any]]:
        """Other sizes and dtypes at which to follow an element: a kernel may be honest at one of
        them alone."""
        usual = bench.contract.usual_dtypes()
        affordable = [
            dims
            for dims in (bench.contract.usual_dims(), bench.odd_dims())
            if dims != few and bench.elements(dims) <= bench.budget
        ]
        others = list(bench.contract.dtype_assignments())[1:]
        return [(dims, usual) for dims in affordable] + [(few, dtypes) for dtypes in others]

    def _drawn(self, bench: Bench) -> list[dict[str, int]]:
        """Sizes that nobody can list, the smallest of them, for all data are written down."""
        paths = other_paths(bench, GateId.HONEST)
        return sorted((path.dims for path in paths), key=bench.elements)[:1]

    def in_passing(self, bench: Bench, args: Sequence[Arg], reply: Reply) -> Finding | None:
        """In whatever call that has something to compute: torch computes nothing for it."""
        wrong = _misbehaved(reply)
        if wrong or bench.contract.behaviour.library_calls or _is_empty((*args, *reply.outputs)):
            return wrong
        return _by_torch(bench, reply)

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        return CHECKS[case.params["check"]](bench, case, subject)


GATE = Honest()
