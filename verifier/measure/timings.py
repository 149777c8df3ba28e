"""One kernel and its baselines on one workload: the passes, and which clock is to be believed.

1. ``warm`` and ``cold``: device marks around each call, without and with the L2 overwritten before
   it, and the referee's clock around the whole.
2. ``dense``: unbroken rows of calls, by the referee's clock alone. No call can be shorter on the
   device than this says, unless the host is what the device waits for.
3. A cold claim to which both clocks agree is taken. Otherwise the calls are captured in a CUDA
   graph, where the host is out of the way: a claim that the clock contradicts there is a lie. What
   cannot be captured gets the dense time, which includes the host and cannot be talked down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from verifier.candidate.timed import CaughtError, NoGraphError
from verifier.measure import decide
from verifier.measure.clocks import Agreement, Check
from verifier.measure.looks import WrongOutputError
from verifier.measure.subjects import KERNEL, NOTHING, Timed
from verifier.measure.trial import Look, Mode, Passed, run_pass, tape_of
from verifier.records import Clock

COLD_OVER_WARM: Final = 0.9
"""A cold call that claims less than this share of what the clock saw of a warm one, lies."""
_PILOT: Final = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one workload on one device, in bytes."""

    l2: int
    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Timing:
    """One subject's calls in seconds, a group for each repeat."""

    groups: tuple[tuple[float, ...], ...]
    clock: Clock
    warm_s: float | None = None
    check: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """All subjects on one clock, so that they can be compared, and what there is to say of it."""

    by_name: Mapping[str, Timing]
    notes: tuple[str, ...] = ()
    caught: str = ""
    """Why the kernel's time is not believed."""


@dataclass(slots=True)
class Watch:
    """The subjects of one workload while they are timed."""

    subjects: Sequence[Timed]
    """All armed; the kernel first, nothing last."""
    sizes: Sizes
    look: Look
    notes: list[str] = field(default_factory=list)

    def time(self) -> Timings:
        """Raises TimingError when some subject ends, WrongOutputError when the kernel is wrong."""
        pilot_s = self._pilot()
        try:
            by_name = self._timed(pilot_s)
        except WrongOutputError:
            raise
        except CaughtError as error:
            timing = Timing(((pilot_s,),), Clock.REFEREE, check="one run of a few calls")
            return Timings({KERNEL: timing}, tuple(self.notes), str(error))
        return Timings(by_name, tuple(self.notes))

    def _pilot(self) -> float:
        """Seconds a call of the kernel, all told."""
        run = self.subjects[0].play(tape_of(Mode(), _PILOT))
        return run.wall_s / run.calls

    def _timed(self, pilot_s: float) -> dict[str, Timing]:
        calls = decide.calls_of(pilot_s, self.sizes.outputs)
        most = decide.RING_BYTES // (2 * max(self.sizes.inputs, 1))
        warm = self._pass(Mode(), calls)
        dense = self._pass(Mode(dense=True), max(decide.LEAST_CALLS, min(calls, most)))
        flush_bytes = self._flush_bytes(warm, calls)
        cold = self._pass(Mode(flush_bytes), calls)
        if believable(cold.check(KERNEL), dense):
            return _marked(Clock.EVENTS, self._names(), cold, warm)
        return self._captured(cold, dense) or self._by_clock(cold, dense)

    def _pass(self, mode: Mode, calls: int, subjects: Sequence[Timed] | None = None) -> Passed:
        return run_pass(subjects or self.subjects, mode, calls, self.look)

    def _names(self) -> list[str]:
        return [subject.name for subject in self.subjects[:-1]]

    def _flush_bytes(self, warm: Passed, calls: int) -> int:
        """So much that the device is busy while the host prepares the next call of any subject."""
        nothing, least = self.subjects[-1], decide.FLUSH_BYTES
        with_flush = nothing.play(tape_of(Mode(least), calls)).wall_s
        per_flush_s = max(with_flush / calls - warm.slope(NOTHING).per_call_s, 1e-9)
        flushes = [
            decide.flush_of(
                self.sizes.l2,
                warm.slope(name).per_call_s,
                warm.claimed_s(name),
                least / per_flush_s,
            )
            for name in self._names()
        ]
        if not all(flush.covers for flush in flushes):
            self.notes.append("the host is slower than the longest flush between two calls")
        return max(flush.nbytes for flush in flushes)

    # -- where marks in a stream do not do

    def _captured(self, cold: Passed, dense: Passed) -> dict[str, Timing] | None:
        """Timed through a graph; None, with a note, where that cannot be."""
        in_graph = decide.in_graph_of(self.sizes.outputs)
        able = [subject for subject in self.subjects if self._capturable(subject, in_graph)]
        if able[:1] != [self.subjects[0]] or able[-1:] != [self.subjects[-1]]:
            return None
        calls = decide.REPLAYS * in_graph
        warm = self._pass(Mode(in_graph=in_graph), calls, able)
        least = max(decide.FLUSH_BYTES, 2 * self.sizes.l2)
        marked = self._pass(Mode(least, in_graph), calls, able)
        catch(marked.check(KERNEL), warm.check(KERNEL))
        self._say_why(cold, dense)
        return _marked(Clock.GRAPH, [subject.name for subject in able[:-1]], marked, warm)

    def _say_why(self, cold: Passed, dense: Passed) -> None:
        claimed_s, host_s = cold.check(KERNEL).claimed_s, median(dense.by_clock_s(KERNEL))
        if decide.is_launch_bound(claimed_s, host_s):
            self.notes.append(
                f"launch-bound: the device needs {claimed_s * 1e6:.1f} us for a call, the host "
                f"{host_s * 1e6:.1f} us; timed through a CUDA graph"
            )
        else:
            self.notes.append(f"timed through a CUDA graph: {cold.check(KERNEL).text}")

    def _capturable(self, subject: Timed, in_graph: int) -> bool:
        """Whether it comes through a capture, and, for the kernel, works in the replay: what is
        launched on another stream than the caller's does not, and that is no lie about time."""
        tape = tape_of(Mode(in_graph=in_graph), in_graph)
        try:
            subject.play(tape)
            if subject.name == KERNEL:
                self.look(tape)
        except (NoGraphError, CaughtError) as error:
            self.notes.append(f"{subject.name} cannot be captured in a CUDA graph: {error}")
            return False
        return True

    def _by_clock(self, cold: Passed, dense: Passed) -> dict[str, Timing]:
        """The referee's own clock, which nobody else can set."""
        self.notes.append(
            f"not graph-timed; by the referee's clock, host included, inputs new in every call but "
            f"no flush between them: {cold.check(KERNEL).text}"
        )
        timings = {}
        for name in self._names():
            seconds = tuple((max(one, 1e-9),) for one in dense.by_clock_s(name))
            timings[name] = Timing(seconds, Clock.REFEREE, check=cold.check(name).text)
        return timings


def believable(check: Check, dense: Passed) -> bool:
    """Whether what the kernel's marks claim can be taken: the referee's clock agrees, and its dense
    time leaves no room for work outside of the marks."""
    agreed = check.agreement in (Agreement.AGREES, Agreement.TOO_LONG)
    host_s = median(dense.by_clock_s(KERNEL))
    return agreed and not decide.is_launch_bound(check.claimed_s, host_s)


def catch(cold: Check, warm: Check) -> None:
    """In a graph the host is no excuse. Raises CaughtError for a claim that is too short."""
    for name, check in (("cold", cold), ("warm", warm)):
        if check.agreement is Agreement.TOO_SHORT:
            raise CaughtError(f"the two clocks disagree ({name}, in a graph): {check.text}")
    least_s = COLD_OVER_WARM * warm.clock_s - warm.noise_s - cold.noise_s
    if cold.claimed_s < least_s:
        raise CaughtError(
            f"cold calls claim {cold.claimed_s * 1e6:.2f} us, but warm ones take "
            f"{warm.clock_s * 1e6:.2f} us by the referee's clock"
        )


def _marked(clock: Clock, names: Sequence[str], cold: Passed, warm: Passed) -> dict[str, Timing]:
    return {
        name: Timing(cold.groups[name], clock, warm.claimed_s(name), cold.check(name).text)
        for name in names
    }
