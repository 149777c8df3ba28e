"""How long an accepted kernel takes, beside eager and torch.compile, on the machine that judged it.

On a GPU ``timings`` says which clock is believed (docs/timing.md). In the interpreter kernel and
eager take turns call by call and the times are wall times, which say how long this machine took and
nothing about a device, so no speedup is made of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import torch

from verifier.candidate.client import Candidate
from verifier.candidate.stopwatch import Setup
from verifier.candidate.timed import TimedCandidate, TimingError
from verifier.contract import Workload
from verifier.measure import roofline, subjects, traffic
from verifier.measure.decide import slots_of
from verifier.measure.device_state import read_state
from verifier.measure.looks import Looks, WrongOutputError
from verifier.measure.roofline import Floor
from verifier.measure.statistics import grouped_interval, median_interval
from verifier.measure.subjects import COMPILE, EAGER, KERNEL, Local, Timed
from verifier.measure.timings import Sizes, Timing, Timings, Watch
from verifier.records import (
    CallDigest,
    CaseRecord,
    Clock,
    DeviceMode,
    DeviceState,
    Measurement,
)
from verifier.referee.bench import Bench, digest
from verifier.referee.eager import as_tuple, copy_with_layout
from verifier.referee.inputs import torch_dtype
from verifier.referee.timed import STAGED, fixed_places, judged, timed_case, turned_args
from verifier.subject import Arg, Reply, Subject

CALLS: Final = 7
WARM_UP: Final = 3
SHIFT_BITS: Final = 46
INTERPRETER_NOTE: Final = "wall time in the interpreter; says nothing about a device"


def workloads(bench: Bench) -> tuple[Workload, ...]:
    """What to time: the contract's workloads on a GPU, one small assignment in the interpreter."""
    usual = Workload("usual", bench.contract.usual_dims(), bench.contract.usual_dtypes())
    if bench.mode is DeviceMode.CPU_INTERPRET:
        return (replace(usual, dims=bench.small_dims()),)
    return bench.contract.workloads or (usual,)


def measure(bench: Bench, kernel: Subject) -> tuple[Measurement, ...]:
    """Time the kernel and its baselines on each workload. Call it for accepted kernels only.

    Raises WrongOutputError when a timed call of the kernel's has a wrong output.
    """
    rows: list[Measurement] = []
    for workload in workloads(bench):
        if bench.mode is DeviceMode.CUDA and isinstance(kernel, Candidate):
            with suppress(TimingError):  # it passed its gates and then ended on the clock: no time
                rows += Stage(bench, workload).measure(TimedCandidate(kernel))
        else:
            rows += _wall_rows(bench, workload, kernel)
    return tuple(rows)


# --- in the interpreter


def _wall_rows(bench: Bench, workload: Workload, kernel: Subject) -> list[Measurement]:
    eager = bench.new_eager()
    samples = _samples(bench, workload, (kernel, eager))
    if not all(samples):
        return []
    rows = []
    for name, taken in zip((KERNEL, EAGER), samples, strict=True):
        interval = median_interval(taken, seed=bench.seed)
        row = Measurement(
            workload.name,
            name,
            latency_ms=interval.median,
            low_ms=interval.low,
            high_ms=interval.high,
            n=interval.n,
            note=INTERPRETER_NOTE,
        )
        rows.append(row)
    return rows


def _samples(
    bench: Bench, workload: Workload, taking_turns: Sequence[Subject]
) -> list[list[float]]:
    """Wall times in ms per subject, call by call; fresh inputs at fresh addresses in every call.
    Raises WrongOutputError."""
    samples: list[list[float]] = [[] for _ in taking_turns]
    dtypes = {**bench.contract.usual_dtypes(), **workload.dtypes}
    calls = WallCalls(bench, CaseRecord("time", workload.dims, dtypes, "normal", secret_seed()))
    for number in range(WARM_UP + CALLS):
        args = calls.args(number)
        for taken, subject in zip(samples, taking_turns, strict=True):
            reply = subject.call(args, STAGED)
            if subject.name == KERNEL:
                calls.keep(reply)
            if reply.returned and number >= WARM_UP:
                taken.append(reply.wall_s * 1e3)
    calls.look()
    return samples


def secret_seed() -> int:
    """Nobody may know a timing's inputs from the seed of the verdict, which its gates have
    shown."""
    return secrets.randbits(62)


class WallCalls:
    """The calls of one workload in the interpreter: what each gets, and what the kernel made of it.
    All are kept, for they are small, and looked at when all are over."""

    def __init__(self, bench: Bench, case: CaseRecord) -> None:
        self._bench, self._case = bench, case
        self._args, self._fixed = bench.args(case), fixed_places(bench)
        self._shifts = [secrets.randbits(SHIFT_BITS) for _ in range(WARM_UP + CALLS)]
        self._replies: list[Reply] = []

    def args(self, number: int) -> list[Arg]:
        return turned_args(self._args, self._shifts[number], self._fixed)

    def keep(self, reply: Reply) -> None:
        """The kernel's, in order."""
        self._replies.append(reply)

    def look(self) -> None:
        """Raises WrongOutputError at the first wrong one."""
        if self._bench.contract.behaviour.random:
            return  # what it draws cannot be held against one right answer
        for number in range(len(self._replies)):
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        reply, args = self._replies[number], self.args(number)
        finding = judged(self._bench, self._case, args, reply)
        if finding.failed:
            case = timed_case(self._case, self._shifts[: number + 1])
            raise WrongOutputError(case, finding, CallDigest(digest(args), digest(reply.outputs)))


# --- on a device


@dataclass(frozen=True, slots=True)
class Stage:
    """One workload on one device."""

    bench: Bench
    workload: Workload
    baselines: tuple[str, ...] = (EAGER, COMPILE)

    @property
    def dtypes(self) -> Mapping[str, str]:
        return {**self.bench.contract.usual_dtypes(), **self.workload.dtypes}

    def measure(self, kernel: Timed) -> list[Measurement]:
        """Rows of the kernel and of every baseline that could be timed.

        Raises TimingError where the kernel could not, or some subject ended in the middle, and
        WrongOutputError where the kernel's output was wrong.
        """
        case = CaseRecord("time", self.workload.dims, self.dtypes, "normal", secret_seed())
        args = self.bench.args(case)
        setup = self._setup(args)
        looks = Looks(self.bench, case, args, setup.fixed)
        ready, notes = self._armed(kernel, args, setup)
        sizes = self._sizes(args)
        timings = Watch(ready, sizes, lambda tape: looks.look(kernel, tape), notes).time()
        floor = self._floor(args, sizes)
        torch.cuda.empty_cache()  # the next kernel's process needs it, too
        return make_rows(self.workload.name, timings, floor, self._state(), self.bench.seed)

    def _setup(self, args: Sequence[Arg]) -> Setup:
        contract, position = self.bench.contract, self.bench.position
        changed = [o.in_place_of for o in contract.outputs if o.in_place_of is not None]
        return Setup(
            slots=slots_of(_nbytes(args)),
            fixed=fixed_places(self.bench),
            in_place=tuple(map(position, changed)),
        )

    def _armed(
        self, kernel: Timed, args: Sequence[Arg], setup: Setup
    ) -> tuple[list[Timed], list[str]]:
        """The kernel, the baselines that run, nothing; and why some baseline does not run."""
        ready, notes = [kernel], []
        kernel.arm(args, setup)
        for name in self.baselines:
            baseline = self._baseline(name)
            try:
                baseline.arm(args, setup)
                ready.append(baseline)
            except TimingError as error:
                notes.append(f"no baseline {name!r}: {error}")
        nothing = subjects.nothing(self._outputs(args), self.bench.device)
        nothing.arm(args, setup)
        return [*ready, nothing], notes

    def _baseline(self, name: str) -> Local:
        make = subjects.eager if name == EAGER else subjects.compiled
        tf32 = self.bench.contract.behaviour.allow_tf32
        return make(self.bench.reference, self.bench.device, allow_tf32=tf32)

    def _placed(self, args: Sequence[Arg]) -> list[Arg]:
        device = self.bench.device
        return [copy_with_layout(a, device) if isinstance(a, torch.Tensor) else a for a in args]

    def _outputs(self, args: Sequence[Arg]) -> list[torch.Tensor]:
        """Tensors such as a call returns."""
        in_place = [out.in_place_of is not None for out in self.bench.contract.outputs]
        try:
            with torch.no_grad():
                outputs = as_tuple(self.bench.reference(*self._placed(args)))
        except Exception as error:
            raise TimingError(f"eager refuses this workload: {error}") from error
        return [out.detach() for out, inside in zip(outputs, in_place, strict=True) if not inside]

    def _sizes(self, args: Sequence[Arg]) -> Sizes:
        contract, dims = self.bench.contract, self.workload.dims
        outputs = sum(
            prod(contract.shape(out, dims)) * torch_dtype(contract.dtype(out, self.dtypes)).itemsize
            for out in contract.outputs
        )
        properties = torch.cuda.get_device_properties(self.bench.device)
        return Sizes(int(properties.L2_cache_size), _nbytes(args), outputs)

    def _floor(self, args: Sequence[Arg], sizes: Sizes) -> Floor | None:
        name = torch.cuda.get_device_properties(self.bench.device).name
        peaks = roofline.peaks_of(name)
        if peaks is None:
            return None
        contract, placed = self.bench.contract, self._placed(args)
        work = traffic.work_of(
            contract, self.bench.reference, placed, self.workload.dims, self.dtypes
        )
        return roofline.floor_of(work, peaks, sizes.l2)

    def _state(self) -> DeviceState:
        properties = torch.cuda.get_device_properties(self.bench.device)
        return read_state(f"GPU-{properties.uuid}")


def _nbytes(args: Sequence[Arg]) -> int:
    return sum(arg.nbytes for arg in args if isinstance(arg, torch.Tensor))


# --- rows


def make_rows(
    workload: str, timings: Timings, floor: Floor | None, state: DeviceState | None, seed: int
) -> list[Measurement]:
    """Measurements with the kernel first: speedups over eager, unless the time is not believed."""
    rows = [
        _row(workload, name, timing, floor, state, seed) for name, timing in timings.by_name.items()
    ]
    rejected = timings.caught or rows[0].rejected
    rows[0] = replace(rows[0], rejected=rejected, note="; ".join(timings.notes))
    eager = next((row for row in rows if row.subject == EAGER), None)
    if eager is None or eager.rejected:
        return rows
    return [_with_speedup(row, eager) for row in rows]


def _row(
    workload: str,
    name: str,
    timing: Timing,
    floor: Floor | None,
    state: DeviceState | None,
    seed: int,
) -> Measurement:
    least_s = 1e-9  # what claims to take no time at all is rejected, and still needs a number
    groups = [[max(second, least_s) * 1e3 for second in group] for group in timing.groups]
    interval = grouped_interval(groups, seed=seed)
    # The floor is that of a cold cache, which rows of calls without a flush do not begin with.
    cold = floor if timing.clock in (Clock.EVENTS, Clock.GRAPH) else None
    below = cold is not None and cold.rejects(interval.median / 1e3)
    return Measurement(
        workload,
        name,
        latency_ms=interval.median,
        low_ms=interval.low,
        high_ms=interval.high,
        n=interval.n,
        clock=timing.clock,
        repeats=len(timing.groups),
        warm_ms=None if timing.warm_s is None else timing.warm_s * 1e3,
        floor_ms=floor.seconds * 1e3 if floor is not None else None,
        check=timing.check,
        rejected=cold.objection(interval.median / 1e3) if cold is not None and below else "",
        state=state,
    )


def _with_speedup(row: Measurement, eager: Measurement) -> Measurement:
    comparable = not row.rejected and row.clock is eager.clock and row.subject != EAGER
    return replace(row, speedup=eager.latency_ms / row.latency_ms) if comparable else row
