"""One worker of a node agent: a verifier, and one leased run at a time.

No Django, no torch, no database. A kernel is judged by the supervised child and below it; this
process only moves JSON. Whatever goes wrong here is an infrastructure error and never counts
against a kernel.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpu_runner.config import AgentConfig, verifier_environment
from gpu_runner.feed import RETRY_S, EventFeed
from gpu_runner.hub import Hub, HubRefusedError, HubUnreachableError, LeaseLostError
from gpu_runner.protocol import FaultKind, LeasedRun
from gpu_runner.registry import Registry
from gpu_runner.scratch import Scratch, ScratchError
from gpu_runner.standing import Standing
from gpu_runner.verifier_process import (
    DeviceSickError,
    Job,
    Line,
    VerifierError,
    VerifierProcess,
    report_in,
)

log = logging.getLogger(__name__)

TICK_S: Final = 0.1
BACKOFF_MAX_S: Final = 60.0
CANCEL_GRACE_S: Final = 3.0
GOODBYE_S: Final = 2.0
REPORT_S: Final = 600.0
"""How long a verdict is offered to a hub that does not answer before it is given up."""


class Worker:
    """Judges one run at a time. ``take`` is called by one thread at a time."""

    def __init__(
        self,
        config: AgentConfig,
        hub: Hub,
        scratch: Scratch,
        registry: Registry,
        standing: Standing,
    ) -> None:
        self.config = config
        self._hub = hub
        self._scratch = scratch
        self._registry = registry
        self._standing = standing
        self._stop = standing.stop
        self._verifier: VerifierProcess | None = None
        self._faults = 0

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def take_safely(self) -> bool:
        """As ``take``; the loop must outlive any mistake of ours: the run is given back by its
        lease."""
        try:
            return self.take()
        except Exception:
            log.exception("the agent stumbled")
            self._pause_after_fault()
            return False

    def take(self) -> bool:
        """Leases the next run and judges it; False when there is none, or no verifier for it."""
        if self.stopping:
            return False
        if not self._standing.in_service:
            self._rest()
            return False
        if not self._make_ready():
            return False
        try:
            leased = self._hub.lease()
        except (HubUnreachableError, HubRefusedError) as error:
            log.warning("no lease: %s", error)
            self._stop.wait(self.config.poll_s)
            return False
        if leased is None:
            return False
        self._judge(leased)
        return True

    # -- getting ready, and staying out of service -----------------------------------------------

    def _make_ready(self) -> bool:
        """A warm verifier, and a hub that knows of it; False when either is not to be had now."""
        try:
            with self._standing.in_turn():
                if not self._standing.in_service:
                    return False  # another worker found out while this one waited for its turn
                self._warm_up()
            self._registry.register(self._warm.environment)
        except HubUnreachableError as error:
            # The verifier stays: warming up takes seconds, and the hub may just be starting.
            log.warning("not registered: %s", error)
            self._stop.wait(self.config.poll_s)
            return False
        except (VerifierError, HubRefusedError) as error:
            self._not_ready(error)
            return False
        return self._standing.in_service

    def _not_ready(self, error: Exception) -> None:
        self._end_verifier()
        if self.stopping:
            return
        log.error("not ready: %s", error)
        if isinstance(error, VerifierError):
            self._standing.strike(str(error), report_in(error))
        self._pause_after_fault()

    @property
    def _warm(self) -> VerifierProcess:
        assert self._verifier is not None  # noqa: S101 - _warm_up() left one
        return self._verifier

    def _warm_up(self) -> None:
        """A verifier that is ready and whose device it has found healthy; else VerifierError."""
        if self._verifier is not None and self._verifier.alive:
            return
        self._end_verifier()
        self._verifier = VerifierProcess(
            self.config.verifier, verifier_environment(), self.config.scratch
        )
        self._verifier.wait_ready(self.config.ready_s, self._stop)

    def _rest(self) -> None:
        """Out of service: let go of the device, tell the hub, and at times look whether the device
        has recovered."""
        self._end_verifier()
        with contextlib.suppress(HubUnreachableError, HubRefusedError):
            self._standing.tell()
        with self._standing.examination() as mine:
            if mine:
                self._examine()

    def _examine(self) -> None:
        """A fresh verifier examines its device before it is ready."""
        try:
            self._warm_up()
            self._registry.register(self._warm.environment)
            self._standing.return_ask(self._warm.health)
        except VerifierError as error:
            if not self.stopping:
                self._standing.strike(str(error), report_in(error))
        except (HubUnreachableError, HubRefusedError) as error:
            log.warning("not back in service: %s", error)
        if not self._standing.in_service:
            self._end_verifier()

    def _pause_after_fault(self) -> None:
        """A broken machine must not burn through the queue's attempts."""
        self._faults += 1
        self._stop.wait(min(2.0 ** (self._faults - 1), BACKOFF_MAX_S))

    # -- one run ---------------------------------------------------------------------------------

    def _judge(self, leased: LeasedRun) -> None:
        """Judges one leased run and reports exactly one of verdict, fault, release, nothing."""
        log.info("run %s attempt %s: %s", leased.run, leased.attempt, leased.task)
        try:
            with self._beating(leased) as beat:
                self._report(leased, self._judged(leased, beat))
            self._faults = 0
        except LeaseLostError as error:
            log.warning("run %s given up: %s", leased.run, error)
            self._end_verifier()
        except (VerifierError, ScratchError, OSError, HubRefusedError) as error:
            self._end_verifier()
            self._fault(leased, FaultKind.INFRASTRUCTURE, str(error))
            if isinstance(error, DeviceSickError):
                self._standing.strike(str(error), error.report, heavy=True)
            self._pause_after_fault()
        except HubUnreachableError as error:
            log.error("run %s: the hub does not answer: %s", leased.run, error)
            self._end_verifier()
        except Exception as error:
            # A mistake of ours: the verifier may still be at this run, so it goes as well.
            log.exception("run %s: the agent stumbled", leased.run)
            self._end_verifier()
            self._fault(leased, FaultKind.INFRASTRUCTURE, f"the agent stumbled: {error!r}")
            self._pause_after_fault()
        if self.stopping:
            self._release(leased)

    def _judged(self, leased: LeasedRun, beat: Beat) -> Line | None:
        """The line that ended the job; None when it was cancelled, lost or stopped."""
        verifier = self._warm
        folder = self._scratch.task(leased.digest, lambda: self._hub.task(leased))
        with self._scratch.kernel(leased) as kernel:
            job_id = f"{leased.run}:{leased.attempt}"
            deep = self.config.deep
            verifier.submit(
                Job(job_id, str(folder), str(kernel), leased.entry, leased.seed, deep=deep)
            )
            return self._follow(verifier, job_id, EventFeed(self._hub, leased), beat)

    def _follow(
        self, verifier: VerifierProcess, job_id: str, feed: EventFeed, beat: Beat
    ) -> Line | None:
        """Passes the job's events on until one of them ends it.

        VerifierError when the child dies or the wall time is up, LeaseLostError when the run now
        belongs to somebody else.
        """
        deadline = time.monotonic() + self.config.wall_s
        while time.monotonic() < deadline:
            if beat.lost:
                raise LeaseLostError("the hub gave the run to another attempt")
            if self.stopping or beat.cancelled or feed.cancelled:
                self._call_off(verifier, job_id)
                return None
            line = verifier.next_line(TICK_S)
            if line is not None and line.job == job_id:
                if line.event in ("verdict", "error", "cancelled"):
                    self._flush(feed)
                    return line
                feed.add(line.event, line.payload)
            feed.flush_if_due()
        raise VerifierError(f"the run took longer than {self.config.wall_s:.0f} s")

    def _flush(self, feed: EventFeed) -> None:
        """Everything before the end: the hub takes no events of a run that has ended."""
        deadline = time.monotonic() + REPORT_S
        feed.flush()
        while feed.waiting and not self.stopping and time.monotonic() < deadline:
            self._stop.wait(RETRY_S)
            feed.flush()

    def _call_off(self, verifier: VerifierProcess, job_id: str) -> None:
        """Lets the child end the job by itself and stay warm; kills it when it does not."""
        if self.stopping:
            self._end_verifier()
            return
        verifier.cancel(job_id)
        deadline = time.monotonic() + CANCEL_GRACE_S
        while time.monotonic() < deadline:
            line = verifier.next_line(TICK_S)
            ended = line is not None and line.event in ("cancelled", "verdict", "error")
            if ended and line is not None and line.job == job_id:
                return
        self._end_verifier()

    def _report(self, leased: LeasedRun, line: Line | None) -> None:
        """Offers the result until the hub takes it or says that it wants it no more.

        VerifierError for an infrastructure error that the verifier itself reports: it is treated
        as broken, so that a dead device does not use up the attempts of the whole queue.
        """
        if line is None or line.event == "cancelled":
            return
        if line.event == "error":
            if line.payload.get("kind") != "task":
                raise line.failure(_complaint(line))
            self._fault(leased, FaultKind.TASK, _complaint(line))
            return
        deadline = time.monotonic() + REPORT_S
        pause_s = 0.5
        while True:
            try:
                self._hub.verdict(leased, dict(line.payload))
                self._standing.judged()
                return
            except HubUnreachableError:
                if self.stopping or time.monotonic() > deadline:
                    raise
            self._stop.wait(pause_s)
            pause_s = min(pause_s * 2, 10.0)

    def _fault(self, leased: LeasedRun, kind: FaultKind, message: str) -> None:
        """Tells the hub; where it does not answer, the lease runs out and says the same."""
        log.error("run %s: %s", leased.run, message)
        try:
            self._hub.fault(leased, kind, message[:4_000])
        except (HubUnreachableError, HubRefusedError) as error:
            log.warning("run %s: fault not reported: %s", leased.run, error)

    def _release(self, leased: LeasedRun) -> None:
        with contextlib.suppress(HubUnreachableError, HubRefusedError):
            self._hub.release(leased, "its node was stopped", timeout_s=GOODBYE_S)

    def _end_verifier(self) -> None:
        verifier, self._verifier = self._verifier, None
        if verifier is not None:
            verifier.end()

    def end(self) -> None:
        """Ends the verifier and all that it started."""
        self._end_verifier()

    @contextmanager
    def _beating(self, leased: LeasedRun) -> Iterator[Beat]:
        beat = Beat(self._hub, leased, self._registry.heartbeat_s)
        beat.start()
        try:
            yield beat
        finally:
            beat.end()


class Beat(threading.Thread):
    """Keeps the lease, and learns from the hub's answers that the run was cancelled or lost."""

    def __init__(self, hub: Hub, leased: LeasedRun, every_s: float) -> None:
        super().__init__(daemon=True, name=f"beat-{leased.run}")
        self.cancelled = False
        self.lost = False
        self._hub = hub
        self._leased = leased
        self._every_s = every_s
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self.cancelled = self._hub.heartbeat(self._leased).cancelled
            except HubRefusedError:
                self.lost = True
            except HubUnreachableError as error:
                log.warning("no heartbeat: %s", error)
            if self.cancelled or self.lost:
                return

    def end(self) -> None:
        self._ended.set()
        self.join()


def _complaint(line: Line) -> str:
    parts = (str(line.payload.get(name) or "") for name in ("message", "advice"))
    return " ".join(part for part in parts if part) or "the verifier gave no reason"
