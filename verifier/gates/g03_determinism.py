"""Gate 3, run-to-run determinism: the same input gives the same bytes, every time.

Ten runs or more, at old and new addresses, over differently dirtied memory, with the device idle
and busy, in two processes; each configuration of an autotuner as a kernel of its own, which
must be right, too. What a contract declares nondeterministic is judged by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from verifier.contract import DomainKind
from verifier.gate import Finding, failed, not_applicable, passed
from verifier.records import CaseRecord, DeviceMode, GateId, GateInfo, Language
from verifier.referee.bench import Bench, Tensors
from verifier.referee.compare import bitwise, worst
from verifier.referee.paths import other_paths
from verifier.referee.probes import first_dtypes
from verifier.subject import CallOptions, Placement, Poison, ReplyKind, Subject

RUNS: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 10, DeviceMode.CUDA: 20}
CONFIGS: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 8, DeviceMode.CUDA: 24}
"""So many configurations of an autotuner are run, evenly spread over all."""
RUNS_EACH: Final[Mapping[DeviceMode, int]] = {DeviceMode.CPU_INTERPRET: 2, DeviceMode.CUDA: 4}
RUNS_ELSEWHERE: Final = 3
"""On one of the other paths that a kernel may take, the last of them in another process; on each
further path one less, in one process."""
ROWS: Final = 4
"""Independent rows in the interpreter: determinism shows at any size that fills a few programs."""

SERIAL: Final = "the interpreter runs programs one after the other, so a race cannot show"


class Determinism:
    """G3."""

    info = GateInfo(
        GateId.DETERMINISM,
        "Run-to-run determinism",
        "the same input gives bitwise the same output in every run and every process",
        tolerance_free=True,
    )
    self_check = True

    def applies(self, bench: Bench) -> str | None:
        """Not to ops that draw random numbers."""
        return "the op draws random numbers" if bench.contract.behaviour.random else None

    def cases(self, bench: Bench) -> Iterator[CaseRecord]:
        """Ordinary values; colliding indices where there are any; races where they could show."""
        dims, dtypes = bench.small_dims(ROWS), first_dtypes(bench)
        label = "repeated runs"
        yield bench.case(self.info.id, label, dims=dims, dtypes=dtypes, kind="repeat")
        if any(item.domain.kind is DomainKind.INDEX for item in bench.contract.inputs):
            label = "repeated runs, colliding indices"
            yield bench.case(
                self.info.id, label, dims=dims, dtypes=dtypes, fill="heavy", kind="collide"
            )
        label = "each configuration"
        yield bench.case(self.info.id, label, dims=dims, dtypes=dtypes, kind="configurations")
        for place, path in enumerate(other_paths(bench, self.info.id)):
            yield bench.case(
                self.info.id,
                f"repeated runs, {path.name}",
                dims=path.dims,
                dtypes=path.dtypes,
                kind="few" if place else "repeat",
                runs=RUNS_ELSEWHERE - bool(place),
                path=path.name,
            )
        label = "concurrent programs"
        yield bench.case(self.info.id, label, dtypes=dtypes, fill="heavy", kind="race")

    def judge(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Run after run against the first one."""
        interpreted = bench.mode is DeviceMode.CPU_INTERPRET
        if case.params["kind"] == "race" and interpreted and bench.language is Language.TRITON:
            return not_applicable(SERIAL)
        if case.params["kind"] == "race" and interpreted:
            return not_applicable("no device on which programs run at once")
        if case.params["kind"] == "configurations":
            return self._configurations(bench, case, subject)
        first = self._run(bench, case, subject, 0)
        if isinstance(first, Finding):
            nothing = not_applicable(f"nothing to compare (see gate 1): {first.detail[:100]}")
            return replace(nothing, refused_at=first.refused_at)
        runs = int(case.params.get("runs", RUNS[bench.mode]))
        for number in range(1, runs):
            if case.params["kind"] == "repeat" and number == (runs + 1) // 2:
                subject = subject.other()
            again = self._run(bench, case, subject, number)
            if isinstance(again, Finding):
                return again
            finding = _same(bench, first, again, number)
            if not finding.passed:
                return finding
        if bench.contract.behaviour.nondeterministic:
            return passed("declared nondeterministic: every run agrees with golden by value")
        return passed(f"{runs} runs, one result")

    def _configurations(self, bench: Bench, case: CaseRecord, subject: Subject) -> Finding:
        """Whichever its tuner may choose, on whatever device: right, and the same each time."""
        reply = subject.call(bench.args(case), CallOptions(config=0))
        refused, count = bench.refused(reply, case), reply.configs
        if refused:
            return refused
        if count < 2:
            return passed("no autotuner has a choice here")
        tried = min(count, CONFIGS[bench.mode])
        for place in range(tried):
            number = place * count // tried
            finding = self._one_configuration(bench, case, subject, number)
            if not finding.passed:
                detail = f"configuration {number + 1} of {count}: {finding.detail}"
                return replace(finding, detail=detail)
        return passed(f"{tried} of {count} configurations")

    def _one_configuration(
        self, bench: Bench, case: CaseRecord, subject: Subject, number: int
    ) -> Finding:
        first = self._run(bench, case, subject, 0, config=number)
        if isinstance(first, Finding):
            return first
        finding = bench.compare(case, bench.args(case), first)
        for again in range(1, RUNS_EACH[bench.mode]):
            run = self._run(bench, case, subject, again, config=number)
            if isinstance(run, Finding) or not finding.passed:
                return run if isinstance(run, Finding) else finding
            finding = _same(bench, first, run, again)
        return finding

    def _run(
        self,
        bench: Bench,
        case: CaseRecord,
        subject: Subject,
        number: int,
        config: int | None = None,
    ) -> Tensors | Finding:
        """One run; a Finding if it is unusable or, where runs may differ, wrong."""
        options = CallOptions(
            config=config,
            poison=tuple(Poison)[number % 3],
            placement=Placement.FRESH if number % 2 else Placement.SAME,
            load=number % 4 == 3,
        )
        args = bench.args(case)
        reply = subject.call(args, options)
        outputs = bench.results(case, args, reply)
        if isinstance(outputs, Finding):
            raised = reply.kind is ReplyKind.RAISED
            return replace(outputs, refused_at=case.dims if raised else None)
        if bench.contract.behaviour.nondeterministic:
            finding = bench.compare(case, args, outputs)
            if not finding.passed:
                return finding
        return outputs


GATE: Final = Determinism()


def _same(bench: Bench, first: Tensors, again: Tensors, number: int) -> Finding:
    if bench.contract.behaviour.nondeterministic:
        return passed()
    what = f"run {number + 1} differs from run 1"
    names = [output.name for output in bench.contract.outputs]
    if len(first) != len(again):
        return failed(f"{what}: another number of outputs")
    return worst(
        [bitwise(name, a, b, what) for name, a, b in zip(names, first, again, strict=True)]
    )
