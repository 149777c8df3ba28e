"""What the driver says of a GPU, through NVML: errors that it counts, heat, who holds its memory.

Everything here is optional: a virtual machine, a container or an older GPU may not answer a
question, and then the answer is None. NVML is read through NVIDIA's own Python binding where that
is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

_GPU_LOST: Final = 15
_RESET_REQUIRED: Final = 16
_XID_EVENT: Final = 8
_HEAT: Final = {0x08: "hardware slowdown", 0x40: "hardware thermal", 0x80: "power brake"}
"""Bits of the driver's clock event reasons that mean trouble; the others are ordinary economy."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds device memory; ``nbytes`` is None where the driver does not say."""

    pid: int
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One reading. None: the driver does not say."""

    lost: str = ""
    """The driver no longer reaches the device, in its words."""
    ecc_uncorrected: int | None = None
    """Since the driver was loaded or the device was reset."""
    rows_pending: bool | None = None
    """A bad row of memory is to be replaced at the next reset."""
    rows_failed: bool | None = None
    pages_pending: bool | None = None
    temperature_c: int | None = None
    slowdown_c: int | None = None
    """The temperature at which the hardware slows itself down."""
    slowdowns: tuple[str, ...] = ()
    persistence: bool | None = None
    xids: tuple[int, ...] | None = None
    """Errors that the driver has reported since the last reading."""
    holders: tuple[Holder, ...] = ()


class Driver(Protocol):
    """Reads the state of one device. Never raises."""

    def read(self) -> DeviceState: ...


class NoDriver:
    """A machine on which nobody can be asked."""

    def read(self) -> DeviceState:
        return DeviceState()


class Nvml:
    """One GPU through NVML. ``library`` is the pynvml module, or what stands in for it."""

    def __init__(self, library: Any, uuid: str) -> None:
        self._nvml = library
        self._lost = ""
        library.nvmlInit()
        self._gpu = library.nvmlDeviceGetHandleByUUID(uuid)
        self._events = self._listen()

    def _listen(self) -> Any:
        """A queue in which the driver's error reports (XID) gather; None where there is none."""
        with suppress(self._nvml.NVMLError):
            events = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(self._gpu, _XID_EVENT, events)
            return events
        return None

    def read(self) -> DeviceState:
        self._lost = ""
        rows = self._ask("nvmlDeviceGetRemappedRows")
        heat = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        state = DeviceState(
            ecc_uncorrected=self._ask("nvmlDeviceGetTotalEccErrors", 1, 0),
            rows_pending=bool(rows[2]) if rows else None,
            rows_failed=bool(rows[3]) if rows else None,
            pages_pending=_flag(self._ask("nvmlDeviceGetRetiredPagesPendingStatus")),
            temperature_c=self._ask("nvmlDeviceGetTemperature", 0),
            slowdown_c=self._ask("nvmlDeviceGetTemperatureThreshold", 1),
            slowdowns=tuple(name for bit, name in _HEAT.items() if heat & bit),
            persistence=_flag(self._ask("nvmlDeviceGetPersistenceMode")),
            xids=tuple(self._xids()) if self._events is not None else None,
            holders=tuple(self._holders()),
        )
        return replace(state, lost=self._lost)

    def _ask(self, question: str, *arguments: int) -> Any:
        """The answer, or None. That the device is gone is remembered."""
        try:
            return getattr(self._nvml, question)(self._gpu, *arguments)
        except self._nvml.NVMLError as error:
            if getattr(error, "value", None) in (_GPU_LOST, _RESET_REQUIRED):
                self._lost = str(error)
        except AttributeError:
            pass  # an older binding does not know the question
        return None

    def _xids(self) -> Iterator[int]:
        with suppress(self._nvml.NVMLError, AttributeError):
            while True:
                yield int(self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData)

    def _holders(self) -> Iterator[Holder]:
        for process in self._ask("nvmlDeviceGetComputeRunningProcesses") or ():
            yield Holder(int(process.pid), process.usedGpuMemory)


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)


def driver_find(uuid: str) -> Driver:
    """NVML for the GPU with this UUID, where it can be had."""
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return NoDriver()
    try:
        return Nvml(library, uuid)
    except library.NVMLError:
        return NoDriver()
