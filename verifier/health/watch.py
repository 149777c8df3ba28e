"""A session's eye on its device: what it was like at the start, what looked odd since.

A kernel is only blamed for a fault after the device has shown that it still answers right. Where
it does not, the run ends as an infrastructure error, and this process should end too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

import torch

from verifier.device_lock import DeviceBusyError, DeviceLock
from verifier.health import examination
from verifier.health.driver import Driver, NoDriver, driver_find
from verifier.health.examination import MIB, Device, TorchDevice, bounded, examine
from verifier.records import (
    DeviceMode,
    Environment,
    EventKind,
    HealthCheck,
    HealthReport,
    HealthState,
    Progress,
)
from verifier.subject import InfrastructureError, Reply, ReplyKind

FAULTS: Final = frozenset({ReplyKind.CRASHED, ReplyKind.TIMED_OUT, ReplyKind.MEMORY})
DUE: Final = 0.7
"""A kernel is due this part of its share of the device's memory; the rest is for contexts and for
what the referee holds."""
ROOM_WAIT_S: Final = 20.0
HUNG: Final = 3
"""Exit status of a verifier whose device does not answer: that of broken machinery."""

Emit = Callable[[Progress], None]


class DeviceSickError(InfrastructureError):
    """The device does not answer right. ``report`` says what was asked and what came back."""

    def __init__(self, report: HealthReport) -> None:
        super().__init__(f"the device is sick: {report.reason}")
        self.report = report


def _give_up(report: HealthReport) -> None:
    """The thread that waits for the device can never be reached again: end the process."""
    with suppress(OSError):
        sys.stderr.write(f"the device is sick: {report.reason}\n")
        sys.stderr.flush()
    os._exit(HUNG)


class Watch:
    """One device, seen from one process. ``real`` is False for a processor, which no kernel can
    break and whose faults are therefore the kernel's own."""

    def __init__(
        self,
        device: Device,
        driver: Driver,
        lock: DeviceLock,
        *,
        name: str = "",
        real: bool = True,
        sharers: int = 1,
    ) -> None:
        self.suspicion = ""
        """What looked odd since the device was last found healthy."""
        self.hung: Callable[[HealthReport], None] = _give_up
        self.answer_s = examination.ANSWER_S
        self.room_wait_s = ROOM_WAIT_S
        self._device = device
        self._driver = driver
        self._lock = lock
        self._name = name
        self._real = real
        self._sharers = sharers
        self._before = driver.read()

    def examine(self, cause: str, *, nbytes: int = examination.QUICK_BYTES) -> HealthReport:
        """Ask the device everything, beside others that judge on it."""
        with self._lock.shared(), bounded(self.answer_s, lambda: self.hung(self._no_answer(cause))):
            report = examine(self._device, self._driver, self._before, cause, nbytes=nbytes)
        if not report.sick:
            self.suspicion = ""
        return replace(report, device=self._name)

    def _no_answer(self, cause: str) -> HealthReport:
        detail = f"the device did not answer within {self.answer_s:g} s"
        check = HealthCheck("answer", HealthState.SICK, detail)
        return HealthReport(cause, (check,), self._name, self.answer_s * 1e3)

    def start(self) -> HealthReport:
        """The thorough examination before the first kernel."""
        return self.examine("start", nbytes=examination.THOROUGH_BYTES if self._real else 8 * MIB)

    def demand(self, cause: str) -> None:
        """Raises DeviceSickError unless the device is found healthy."""
        report = self.examine(cause)
        if report.sick:
            self.suspicion = report.reason
            raise DeviceSickError(report)

    def glance(self) -> None:
        """Before a kernel: what the driver knows already (milliseconds). Raises DeviceSickError."""
        if not self._real:
            return
        checks = tuple(examination.state_checks(self._before, self._driver.read()))
        report = HealthReport("before a kernel", checks, self._name)
        if report.sick:
            self.suspicion = report.reason
            raise DeviceSickError(report)

    def heed(self, reply: Reply) -> bool:
        """A call ended badly, and its process is gone. True: it was short of memory that others
        hold, try again. Raises DeviceSickError or DeviceBusyError where no kernel could go on."""
        if not self._real or reply.kind not in FAULTS:
            return False
        self.suspicion = reply.detail or reply.kind.value
        if reply.kind is ReplyKind.MEMORY:
            return self._was_short()
        self.demand(f"a call {reply.kind.value.replace('_', ' ')}")
        return False

    def _was_short(self) -> bool:
        """Whether the memory that a kernel is due was not free, or may not have been."""
        if not self._room():
            self._await_room()
            return True
        return self._sharers > 1

    def _room(self) -> bool:
        free, total = self._device.room()
        return free >= DUE * total / self._sharers

    def _await_room(self) -> None:
        deadline = time.monotonic() + self.room_wait_s
        while not self._room():
            self._lock.give_way()
            if time.monotonic() > deadline:
                free, total = self._device.room()
                raise DeviceBusyError(
                    f"others hold the device's memory: {free / examination.GIB:.1f} of "
                    f"{total / examination.GIB:.1f} GiB are free, not enough to judge this kernel"
                )
            time.sleep(0.2)

    def gated(self, emit: Emit) -> Emit:
        """Events pass; before a verdict that blames the kernel the device must prove itself."""

        def pass_on(progress: Progress) -> None:
            if self._real and progress.event is EventKind.VERDICT and self._blames(progress):
                self.demand("before a verdict that rejects")
            emit(progress)

        return pass_on

    def _blames(self, progress: Progress) -> bool:
        failed = any(gate.get("status") == "FAIL" for gate in progress.payload.get("gates", ()))
        return failed or bool(self.suspicion)


def watch_begin(
    environment: Environment, device: torch.device, lock: DeviceLock, *, sharers: int = 1
) -> Watch:
    """The watch over the device that a verifier runs on."""
    real = environment.mode is DeviceMode.CUDA
    driver = driver_find(environment.device_uuid) if real else NoDriver()
    return Watch(
        TorchDevice(device),
        driver,
        lock,
        name=environment.device_uuid or environment.device_name,
        real=real,
        sharers=sharers,
    )
