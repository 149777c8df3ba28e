"""A device and its host in arithmetic: subjects whose runs take the time that a model says.

An honest host enqueues a turn of the loop in some time and the device works it off in another; the
slower of the two is what an unbroken stream shows. Liars differ in what they claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from verifier.candidate.stopwatch import Setup, Tape
from verifier.candidate.timed import NoGraphError, Run
from verifier.subject import Arg

US = 1e-6
ONCE_S = 150 * US
"""What a run costs once: request, answer, waiting for the device."""
LOOP_HOST_S = 60 * US
LOOP_DEVICE_S = 8 * US
REPLAY_S = 30 * US
MARK_S = 1 * US
FLUSH_BYTES_PER_S = 3.5e12


@dataclass
class Simulated:
    """One subject. ``device_s`` and ``cold_s`` are what a call takes on the device with a warm and
    a cold cache, ``host_s`` what the host needs to launch it."""

    name: str
    device_s: float = 0.0
    cold_s: float = 0.0
    host_s: float = 1 * US
    claim: float = 1.0
    """What its marks say, as a share of the truth."""
    capturable: bool = True
    hides_in_flush: bool = False
    """It rewrites the loop so that its work runs beside the flush, and claims to take no time."""
    jitter: Sequence[float] = (0.0, 0.3 * US, -0.2 * US)
    runs: int = field(default=0, init=False)

    def arm(self, args: Sequence[Arg], setup: Setup) -> None:
        """Nothing to lay out."""

    def play(self, tape: Tape) -> Run:
        if tape.in_graph and not self.capturable:
            raise NoGraphError("operation not permitted when stream is capturing")
        self.runs += 1
        wall_s = ONCE_S + len(tape.shifts) * self._turn_s(tape) + self.jitter[self.runs % 3] * 10
        seconds = (self._claimed_s(tape),) * tape.calls
        return Run(tape.calls, wall_s, seconds, ((0,),) * tape.calls)

    def reveal(self, call: int) -> tuple[torch.Tensor, ...]:
        return ()

    def _turn_s(self, tape: Tape) -> float:
        flush_s = tape.flush_bytes / FLUSH_BYTES_PER_S
        device_s = self.cold_s if tape.flush_bytes else self.device_s
        beside = max(flush_s, device_s) if self.hides_in_flush else flush_s + device_s
        if tape.in_graph:
            return REPLAY_S + len(tape.in_graph) * (LOOP_DEVICE_S + beside)
        if tape.dense:
            return 20 * US + max(self.host_s, self.device_s)
        return max(LOOP_HOST_S + self.host_s, LOOP_DEVICE_S + beside)

    def _claimed_s(self, tape: Tape) -> float:
        if tape.dense:
            return 0.0
        device_s = self.cold_s if tape.flush_bytes else self.device_s
        if self.hides_in_flush and tape.flush_bytes:
            device_s = 0.0
        return MARK_S + device_s * self.claim


def nothing() -> Simulated:
    return Simulated("nothing")


def kernel(device_us: float, host_us: float, **more: object) -> Simulated:
    """A kernel that is a tenth slower with a cold cache."""
    made = Simulated("kernel", device_us * US, 1.1 * device_us * US, host_us * US)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def eager(device_us: float = 60.0, host_us: float = 15.0) -> Simulated:
    return Simulated("eager", device_us * US, 1.1 * device_us * US, host_us * US)
