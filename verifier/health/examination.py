"""From a device and what its driver says to a report: what is good, odd, sick."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import torch

from verifier.health import exercise
from verifier.health.driver import DeviceState, Driver
from verifier.records import HealthCheck, HealthReport, HealthState

MIB: Final = 1 << 20
GIB: Final = 1 << 30
QUICK_BYTES: Final = 64 * MIB
THOROUGH_BYTES: Final = 1 * GIB
ROOM_BYTES: Final = 2 * GIB
"""With less memory free than this nothing can be judged."""
ANSWER_S: Final = 60.0
"""A healthy device answers in well under a second; a hung one never."""

DEVICE_XIDS: Final = {
    48: "double-bit memory error",
    61: "microcontroller breakpoint",
    62: "microcontroller halt",
    64: "memory row could not be recorded for replacement",
    74: "NVLink error",
    79: "fell off the bus",
    92: "high rate of memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GPU system processor does not answer",
    120: "GPU system processor error",
    140: "unrecovered memory error",
}
"""XID numbers that speak of the hardware, after NVIDIA's XID catalogue. The others (13, 31, 43, 45:
illegal addresses and their like) are what a wrong kernel does to a healthy device."""


class Device(Protocol):
    """What is examined. Each method returns what is wrong, or raises when the device does."""

    def answer(self) -> str: ...

    def memory(self, nbytes: int) -> str: ...

    def room(self) -> tuple[int, int]:
        """Free and total bytes; (0, 0) where nobody counts."""


@dataclass(frozen=True, slots=True)
class TorchDevice:
    """A device that torch works on, through this process' own context."""

    device: torch.device

    def answer(self) -> str:
        found = exercise.words_wrong(self.device), exercise.products_wrong(self.device)
        return "; ".join(filter(None, found))

    def memory(self, nbytes: int) -> str:
        try:
            return exercise.memory_wrong(self.device, nbytes)
        finally:
            if self.device.type == "cuda":  # kernels need it more than our allocator does
                torch.cuda.empty_cache()

    def room(self) -> tuple[int, int]:
        if self.device.type != "cuda":
            return 0, 0
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(self.device)
        return int(free), int(total)


def examine(
    device: Device, driver: Driver, before: DeviceState, cause: str, *, nbytes: int = QUICK_BYTES
) -> HealthReport:
    """Ask everything. ``before`` is the reading that counts are compared with. Never raises for
    what the device does; the driver is asked first, because a lost device need not be tried."""
    began = time.perf_counter()
    now = driver.read()
    checks = [*state_checks(before, now)]
    if not any(check.name == "reachable" and check.state is HealthState.SICK for check in checks):
        room = _asked("room", lambda: _room_wrong(device, now))
        checks += [room, _asked("answer", device.answer)]
        if room.state is HealthState.GOOD:
            checks += [_asked("memory", lambda: device.memory(nbytes))]
    took_ms = (time.perf_counter() - began) * 1e3
    return HealthReport(cause, tuple(checks), duration_ms=round(took_ms, 3))


def _asked(name: str, question: Callable[[], str]) -> HealthCheck:
    """The device's own check; whatever it throws is the finding."""
    try:
        wrong = question()
    except Exception as error:  # noqa: BLE001 - a sick device throws anything
        wrong = f"the device failed a known {name}: {type(error).__name__}: {_line(error)}"
    return HealthCheck(name, HealthState.SICK if wrong else HealthState.GOOD, wrong)


def _line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "")


def _room_wrong(device: Device, now: DeviceState) -> str:
    free, total = device.room()
    needed = min(ROOM_BYTES, total // 4)
    if free >= needed:
        return ""
    held = [
        f"process {holder.pid} holds {_gib(holder.nbytes)}"
        for holder in sorted(now.holders, key=lambda h: h.nbytes or 0, reverse=True)[:3]
        if holder.nbytes
    ]
    return ", ".join([f"only {_gib(free)} of {_gib(total)} of device memory are free", *held])


def _gib(nbytes: int) -> str:
    return f"{nbytes / GIB:.1f} GiB"


def state_checks(before: DeviceState, now: DeviceState) -> Iterator[HealthCheck]:
    """What the driver's reading means, compared with an earlier one."""
    yield _verdict("reachable", None if now == DeviceState() else now.lost)
    yield _verdict("ecc", _ecc_wrong(before, now))
    yield _verdict("rows", _rows_wrong(now))
    yield _verdict("xid", _xid_wrong(now.xids))
    yield _heat(now)
    if now.persistence is not None:
        off = not now.persistence
        detail = "persistence mode is off: the first call after a rest is slow" if off else ""
        yield HealthCheck("persistence", HealthState.WARNING if off else HealthState.GOOD, detail)


def _verdict(name: str, wrong: str | None) -> HealthCheck:
    if wrong is None:
        return HealthCheck(name, HealthState.UNKNOWN, "the driver does not say")
    return HealthCheck(name, HealthState.SICK if wrong else HealthState.GOOD, wrong)


def _ecc_wrong(before: DeviceState, now: DeviceState) -> str | None:
    if now.ecc_uncorrected is None:
        return None
    new = now.ecc_uncorrected - (before.ecc_uncorrected or 0)
    return f"{new} new uncorrectable memory errors" if new > 0 else ""


def _rows_wrong(now: DeviceState) -> str | None:
    if now.rows_pending is None and now.pages_pending is None:
        return None
    wrong = []
    if now.rows_failed:
        wrong.append("a bad memory row could not be replaced")
    if now.rows_pending or now.pages_pending:
        wrong.append("bad memory waits to be replaced: the device needs a reset")
    return "; ".join(wrong)


def _xid_wrong(xids: tuple[int, ...] | None) -> str | None:
    if xids is None:
        return None
    named = [f"XID {xid}: {DEVICE_XIDS[xid]}" for xid in dict.fromkeys(xids) if xid in DEVICE_XIDS]
    return ", ".join(named)


def _heat(now: DeviceState) -> HealthCheck:
    """A hot device is slow, not wrong: its timings carry the temperature, it goes on judging."""
    if now.temperature_c is None:
        return HealthCheck("heat", HealthState.UNKNOWN, "the driver does not say")
    too_hot = now.slowdown_c is not None and now.temperature_c >= now.slowdown_c
    if not too_hot and not now.slowdowns:
        return HealthCheck("heat", HealthState.GOOD, f"{now.temperature_c} °C")
    why = ", ".join(now.slowdowns) or f"slows down from {now.slowdown_c} °C"
    return HealthCheck("heat", HealthState.WARNING, f"{now.temperature_c} °C: {why}")


@contextmanager
def bounded(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """Call ``late`` if what is inside has not ended in time: a hung device never returns, and no
    exception can reach the thread that waits for it."""
    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
