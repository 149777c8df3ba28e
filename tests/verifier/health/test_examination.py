"""From what a device does and what its driver says to a report, with devices that are told how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from verifier.health import exercise
from verifier.health.driver import DeviceState, Holder
from verifier.health.examination import GIB, TorchDevice, examine, state_checks
from verifier.records import HealthReport, HealthState, from_json, to_json

CPU = torch.device("cpu")
HEALTHY = DeviceState(
    ecc_uncorrected=0, rows_pending=False, rows_failed=False, temperature_c=40, xids=()
)


@dataclass
class FakeDevice:
    """Healthy unless told otherwise; an exception is raised, a text is the finding."""

    says: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    free: int = 100 * GIB

    def _tell(self, what: str) -> str:
        self.asked.append(what)
        answer = self.says.get(what, "")
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    def answer(self) -> str:
        return self._tell("answer")

    def memory(self, nbytes: int) -> str:
        return self._tell("memory")

    def room(self) -> tuple[int, int]:
        self._tell("room")
        return self.free, 140 * GIB


@dataclass
class FakeDriver:
    state: DeviceState = HEALTHY

    def read(self) -> DeviceState:
        return self.state


def look(device: FakeDevice | None = None, now: DeviceState = HEALTHY) -> HealthReport:
    return examine(device or FakeDevice(), FakeDriver(now), HEALTHY, "start")


def states(report: HealthReport) -> dict[str, str]:
    return {check.name: check.state.value for check in report.checks}


def test_a_healthy_device_is_found_healthy() -> None:
    report = look()
    assert not report.sick
    assert set(states(report).values()) == {"good"}
    assert from_json(HealthReport, to_json(report)) == report


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (DeviceState(lost="GPU is lost"), "GPU is lost"),
        (DeviceState(ecc_uncorrected=2), "2 new uncorrectable memory errors"),
        (DeviceState(rows_pending=True), "needs a reset"),
        (DeviceState(rows_pending=False, rows_failed=True), "could not be replaced"),
        (DeviceState(pages_pending=True), "needs a reset"),
        (DeviceState(xids=(13, 79)), "XID 79: fell off the bus"),
    ],
)
def test_what_the_driver_counts_makes_a_device_sick(now: DeviceState, reason: str) -> None:
    report = look(now=now)
    assert report.sick
    assert reason in report.reason


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_what_a_wrong_kernel_does_to_a_healthy_device_does_not(xid: int) -> None:
    assert not look(now=DeviceState(xids=(xid,))).sick


def test_errors_of_before_the_start_are_not_new() -> None:
    old = DeviceState(ecc_uncorrected=3)
    assert not examine(FakeDevice(), FakeDriver(old), old, "start").sick


def test_heat_and_persistence_are_warnings_and_the_device_goes_on_judging() -> None:
    report = look(now=DeviceState(temperature_c=92, slowdown_c=89, persistence=False))
    assert not report.sick
    assert (states(report)["heat"], states(report)["persistence"]) == ("warning", "warning")


def test_what_the_driver_does_not_say_is_unknown_and_makes_nobody_sick() -> None:
    report = look(now=DeviceState())
    assert not report.sick
    assert states(report)["ecc"] == states(report)["reachable"] == "unknown"


@pytest.mark.parametrize("what", ["answer", "memory", "room"])
def test_a_device_that_throws_is_sick_whatever_it_throws(what: str) -> None:
    error = RuntimeError("CUDA error: unspecified launch failure\nCompile with ...")
    report = look(FakeDevice({what: error}))
    assert report.sick
    assert "unspecified launch failure" in report.reason
    assert "Compile with" not in report.reason


def test_a_wrong_answer_is_sick() -> None:
    assert look(FakeDevice({"answer": "7 integers came out wrong"})).reason.startswith("7 integers")


def test_a_lost_device_is_not_even_tried() -> None:
    device = FakeDevice()
    look(device, DeviceState(lost="GPU is lost"))
    assert device.asked == []


def test_memory_that_others_hold_is_named_with_its_holder() -> None:
    holders = (Holder(4711, 138 * GIB), Holder(1, None))
    device = FakeDevice(free=GIB // 4)
    report = look(device, DeviceState(holders=holders))
    assert "only 0.2 GiB of 140.0 GiB" in report.reason
    assert "process 4711 holds 138.0 GiB" in report.reason
    assert "memory" not in device.asked


# -- the work itself, on the processor -----------------------------------------------------------


def test_the_known_work_comes_out_right_here() -> None:
    device = TorchDevice(CPU)
    assert (device.answer(), device.memory(1 << 20)) == ("", "")


def test_one_wrong_integer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = exercise.words_right()
    right[12_345] ^= np.uint64(1)
    monkeypatch.setattr(exercise, "words_right", lambda: right)
    assert exercise.words_wrong(CPU) == f"1 of {exercise.WORDS} integers came out wrong"


def test_one_wrong_product_is_noticed_and_its_dtype_named(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = torch.mm

    def flaky(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        product = honest(left, right)
        if left.dtype is torch.bfloat16:
            product[3, 4] += 1
        return product

    monkeypatch.setattr(torch, "mm", flaky)
    assert exercise.products_wrong(CPU) == "matrix products came out wrong in bfloat16"


def test_products_are_small_enough_to_be_exact_in_every_dtype() -> None:
    for dtype in exercise.DTYPES:
        every = torch.arange(-exercise.DEPTH, exercise.DEPTH + 1)
        assert torch.equal(every.to(dtype).to(torch.int64), every)


def test_a_word_of_memory_that_does_not_hold_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = torch.Tensor.fill_

    def stuck(words: torch.Tensor, pattern: int) -> torch.Tensor:
        honest(words, pattern)
        words[5] |= 2
        return words

    monkeypatch.setattr(torch.Tensor, "fill_", stuck)
    assert exercise.memory_wrong(CPU, 4096).startswith("1 of 512 words of memory do not hold")


def test_a_sick_state_needs_words() -> None:
    for check in state_checks(HEALTHY, DeviceState(lost="gone", ecc_uncorrected=9)):
        assert check.detail or check.state is not HealthState.SICK
