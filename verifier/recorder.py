"""Between a gate and the kernel: remembers every call, and sees to what must hold in all of them.

A gate asks about one property in calls of its own. Some properties are of every call: whichever
gate makes it, inputs stay as they were, results share memory with nothing, torch computes nothing.
A kernel that behaves in the few calls that ask for one of these is caught in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, runtime_checkable

from verifier.gate import Finding, Gate, passed
from verifier.records import CallDigest, CaseRecord, GateId, Language
from verifier.referee.bench import Bench, digest
from verifier.subject import ORDINARY, Arg, CallOptions, Reply, ReplyKind, Subject, config_of

FATAL: Final = frozenset(
    {ReplyKind.CRASHED, ReplyKind.TIMED_OUT, ReplyKind.MEMORY, ReplyKind.LOAD_FAILED}
)
"""Replies after which trying the same kernel again and again only costs time."""

Room = Callable[[], AbstractContextManager[None]]
"""Gives what to hold while a call needs most of the device's memory."""

CASE_OF: Final = "case_of"
"""In a case's params: the gate whose case it is, of which a call broke what another gate says."""


@runtime_checkable
class Watchful(Protocol):
    """A gate whose property, or a part of it, must hold in every call of every gate."""

    def in_passing(self, bench: Bench, args: Sequence[Arg], reply: Reply) -> Finding | None:
        """What is wrong about a call that returned, if anything is."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The gates that look at every call."""

    bench: Bench
    gates: Mapping[GateId, Watchful]

    @classmethod
    def of(cls, bench: Bench, gates: Sequence[Gate]) -> Watch:
        watchful = {gate.info.id: gate for gate in gates if isinstance(gate, Watchful)}
        return cls(bench, watchful)

    def breaches(self, args: Sequence[Arg], reply: Reply) -> dict[GateId, Finding]:
        """What each of them has against a call."""
        found = ((id, gate.in_passing(self.bench, args, reply)) for id, gate in self.gates.items())
        return {id: finding for id, finding in found if finding is not None}


@dataclass(slots=True)
class Recorder:
    """A subject that remembers the digests of its calls and how they ended.

    With ``config`` it also chooses for the kernel's autotuners, unless a gate does: a clock would
    choose otherwise each time, and what is judged must be what a replay judges. With ``watch`` each
    call is traced, so that a kernel gains nothing by knowing which call is looked into.
    """

    subject: Subject
    check: Callable[[], None] = lambda: None
    calls: list[CallDigest] = field(default_factory=list)
    kinds: list[ReplyKind] = field(default_factory=list)
    config: int | None = None
    watch: Watch | None = None
    room: Room = nullcontext
    """Held for calls that need most of the device's memory."""
    breaches: dict[GateId, Finding] = field(default_factory=dict)
    """The first thing that each watchful gate had against a call."""
    strayed: bool = False
    """Whether the subject's other process was called, too."""

    @property
    def name(self) -> str:
        return self.subject.name

    def call(self, args: Sequence[Arg], options: CallOptions = ORDINARY) -> Reply:
        self.check()
        before = digest(args)
        if options.config is None:
            options = replace(options, config=self.config)
        if self.watch is not None and not options.bare:
            numpy = self.watch.bench.language is Language.NUMPY  # nothing else bears witness there
            options = replace(options, trace=True, below=options.below or numpy)
        with nullcontext() if options.vast is None else self.room():
            reply = self.subject.call(args, options)
        self.calls.append(CallDigest(before, digest(reply.outputs) if reply.returned else ""))
        self.kinds.append(reply.kind)
        if self.watch is not None and reply.returned and _is_whole(options):
            for gate, finding in self.watch.breaches(args, reply).items():
                self.breaches.setdefault(gate, finding)
        return reply

    def restart(self) -> None:
        self.subject.restart()

    def other(self) -> Recorder:
        """Of the other process; what it does is written down in the same place."""
        self.strayed = True
        return replace(self, subject=self.subject.other())

    @property
    def deaths(self) -> int:
        return sum(kind in FATAL for kind in self.kinds)


def _is_whole(options: CallOptions) -> bool:
    """Whether the kernel ran, and the referee holds all that it was given and gave."""
    return not options.compile and not options.bare and options.vast is None


class Bar:
    """Where a kernel's cases are judged: by one gate, under the eyes of all."""

    def __init__(
        self,
        bench: Bench,
        gates: Sequence[Gate],
        check: Callable[[], None] = lambda: None,
        room: Room = nullcontext,
    ) -> None:
        self.bench, self.gates, self.check, self._room = bench, gates, check, room
        self._watch = Watch.of(bench, gates)

    def recorder(self, subject: Subject, case: CaseRecord) -> Recorder:
        """For the calls of one case."""
        config = config_of(case.seed)
        return Recorder(subject, self.check, config=config, watch=self._watch, room=self._room)

    def gate(self, name: GateId) -> Gate:
        """The gate of this name."""
        return next(gate for gate in self.gates if gate.info.id is name)

    def owner(self, gate: Gate, case: CaseRecord) -> Gate:
        """The gate that makes the calls of a case which this gate judges."""
        name = case.params.get(CASE_OF)
        return gate if name is None else self.gate(GateId(name))

    def judge(self, gate: Gate, case: CaseRecord, recorder: Recorder) -> Finding:
        """The gate's finding about a case of its own, or about the calls of another gate's."""
        if CASE_OF not in case.params:
            return gate.judge(self.bench, case, recorder)
        owner = self.owner(gate, case)
        plain = {name: value for name, value in case.params.items() if name != CASE_OF}
        owner.judge(self.bench, replace(case, params=plain), recorder)
        breach = recorder.breaches.get(gate.info.id)
        return _found_by(owner, case, breach) if breach else passed()

    def judge_afresh(
        self, gate: Gate, case: CaseRecord, subject: Subject
    ) -> tuple[Finding, tuple[CallDigest, ...]]:
        """Judge one case in a fresh process; the finding, and the digests of all its calls."""
        subject.restart()
        subject.other().restart()
        recorder = self.recorder(subject, case)
        return self.judge(gate, case, recorder), tuple(recorder.calls)

    def breaches(
        self, gate: Gate, case: CaseRecord, recorder: Recorder
    ) -> dict[GateId, tuple[CaseRecord, Finding, tuple[CallDigest, ...]]]:
        """What the calls of this gate's case showed to others, as cases of theirs."""
        theirs = replace(case, params={**case.params, CASE_OF: gate.info.id.value})
        return {
            other: (theirs, _found_by(gate, theirs, finding), tuple(recorder.calls))
            for other, finding in recorder.breaches.items()
        }


def _found_by(owner: Gate, case: CaseRecord, finding: Finding) -> Finding:
    where = f"in a call of {owner.info.id.value}, {case.label}"
    return replace(finding, detail=f"{finding.detail} ({where})")
