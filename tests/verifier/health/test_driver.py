"""What is made of a GPU driver's answers, by a driver that answers as it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from verifier.health.driver import DeviceState, Holder, NoDriver, Nvml, driver_find


class NvmlError(Exception):
    """As pynvml's: a number, and words."""

    def __init__(self, value: int) -> None:
        super().__init__({3: "Not Supported", 10: "Timeout", 15: "GPU is lost"}.get(value, "?"))
        self.value = value


class FakeNvml:
    """The functions that we call, with the answers of a healthy H200 unless told otherwise."""

    NVMLError = NvmlError

    def __init__(self, **answers: Any) -> None:
        self.xids: list[int] = answers.pop("xids", [])
        self.answers = {
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
            "nvmlDeviceGetRetiredPagesPendingStatus": NvmlError(3),
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetTemperatureThreshold": 89,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetComputeRunningProcesses": [],
            **answers,
        }

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid == "GPU-absent":
            raise NvmlError(6)
        return uuid

    def nvmlEventSetCreate(self) -> object:
        return object()

    def nvmlDeviceRegisterEvents(self, gpu: str, kinds: int, events: object) -> None:
        if self.answers.get("events") == "refused":
            raise NvmlError(3)

    def nvmlEventSetWait_v2(self, events: object, milliseconds: int) -> Any:
        if not self.xids:
            raise NvmlError(10)
        return type("Event", (), {"eventData": self.xids.pop(0)})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.answers:
            raise AttributeError(name)
        answer = self.answers[name]

        def tell(gpu: str, *rest: int) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return tell


def read(**answers: Any) -> DeviceState:
    return Nvml(FakeNvml(**answers), "GPU-1").read()


def test_a_healthy_device_is_read() -> None:
    assert read() == DeviceState(
        ecc_uncorrected=0,
        rows_pending=False,
        rows_failed=False,
        temperature_c=41,
        slowdown_c=89,
        persistence=True,
        xids=(),
    )


def test_what_the_driver_does_not_support_is_unknown_and_nothing_else_is_lost() -> None:
    state = read(nvmlDeviceGetTotalEccErrors=NvmlError(3), events="refused")
    assert (state.ecc_uncorrected, state.xids) == (None, None)
    assert (state.temperature_c, state.lost) == (41, "")


@pytest.mark.parametrize("number", [15, 16])
def test_a_device_that_the_driver_lost_is_lost(number: int) -> None:
    assert read(nvmlDeviceGetTemperature=NvmlError(number)).lost


def test_errors_that_the_driver_reported_are_read_once() -> None:
    nvml = Nvml(FakeNvml(xids=[13, 79]), "GPU-1")
    assert nvml.read().xids == (13, 79)
    assert nvml.read().xids == ()


def test_who_holds_memory_is_named_also_where_the_driver_hides_how_much() -> None:
    processes = [
        type("P", (), {"pid": 7, "usedGpuMemory": 5}),
        type("P", (), {"pid": 8, "usedGpuMemory": None}),
    ]
    assert read(nvmlDeviceGetComputeRunningProcesses=processes).holders == (
        Holder(7, 5),
        Holder(8, None),
    )


@pytest.mark.parametrize(
    ("bits", "named"),
    [(0x1, ()), (0x4, ()), (0x48, ("hardware slowdown", "hardware thermal"))],
)
def test_only_slowdowns_that_mean_trouble_are_named(bits: int, named: tuple[str, ...]) -> None:
    assert read(nvmlDeviceGetCurrentClocksThrottleReasons=bits).slowdowns == named


def test_an_older_binding_that_lacks_a_question_is_no_obstacle() -> None:
    library = FakeNvml()
    del library.answers["nvmlDeviceGetRemappedRows"]
    assert Nvml(library, "GPU-1").read().rows_pending is None


def test_without_the_binding_or_the_gpu_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert isinstance(driver_find("GPU-1"), NoDriver)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", FakeNvml())
    assert isinstance(driver_find("GPU-absent"), NoDriver)
    assert driver_find("GPU-1").read().temperature_c == 41
