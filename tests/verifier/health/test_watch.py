"""A kernel is blamed only after the device has shown that it still answers right."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.verifier.health.test_examination import FakeDevice, FakeDriver
from verifier.device_lock import DeviceBusyError, DeviceLock, Held
from verifier.health.context import ContextLostError, context_demand
from verifier.health.driver import DeviceState
from verifier.health.examination import GIB
from verifier.health.watch import DeviceSickError, Watch
from verifier.records import EventKind, HealthReport, Progress
from verifier.referee.eager import Eager
from verifier.subject import Reply, ReplyKind

CRASHED = Reply(ReplyKind.CRASHED, "CUDA error: an illegal memory access was encountered")
MEMORY = Reply(ReplyKind.MEMORY, "CUDA out of memory")
REJECTS = Progress(1.0, EventKind.VERDICT, {"gates": [{"status": "PASS"}, {"status": "FAIL"}]})
ACCEPTS = Progress(1.0, EventKind.VERDICT, {"gates": [{"status": "PASS"}]})


def watch(device: FakeDevice, driver: FakeDriver | None = None, **how: Any) -> Watch:
    made = Watch(device, driver or FakeDriver(), DeviceLock.alone(), **how)
    made.room_wait_s = 0.3
    return made


def test_a_crash_on_a_healthy_device_is_the_kernels(device: FakeDevice) -> None:
    seen = watch(device)
    assert not seen.heed(CRASHED)
    assert seen.suspicion == ""


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


@pytest.mark.parametrize("kind", [ReplyKind.CRASHED, ReplyKind.TIMED_OUT])
def test_a_crash_on_a_sick_device_is_nobodys_verdict(device: FakeDevice, kind: ReplyKind) -> None:
    seen = watch(device)
    device.says["answer"] = "7 integers came out wrong"
    with pytest.raises(DeviceSickError, match="7 integers") as raised:
        seen.heed(Reply(kind))
    assert raised.value.report.sick
    assert seen.suspicion


def test_calls_that_end_well_cost_no_examination(device: FakeDevice) -> None:
    seen = watch(device)
    for kind in (ReplyKind.RETURNED, ReplyKind.RAISED, ReplyKind.BAD_OUTPUT):
        assert not seen.heed(Reply(kind))
    assert device.asked == []


def test_a_kernel_on_a_processor_cannot_break_it(device: FakeDevice) -> None:
    device.says["answer"] = "wrong"
    assert not watch(device, real=False).heed(CRASHED)


def test_a_kernel_that_had_all_its_memory_is_not_tried_again(device: FakeDevice) -> None:
    device.free = 139 * GIB
    assert not watch(device).heed(MEMORY)


def test_a_kernel_beside_others_may_have_been_short_of_memory(device: FakeDevice) -> None:
    assert watch(device, sharers=4).heed(MEMORY)


def test_a_kernel_is_tried_again_once_others_have_let_go(device: FakeDevice) -> None:
    seen = watch(device)
    seen.room_wait_s = 20.0
    device.free = GIB
    threading.Timer(0.3, setattr, (device, "free", 139 * GIB)).start()
    assert seen.heed(MEMORY)


def test_memory_that_others_keep_is_no_verdict(device: FakeDevice) -> None:
    device.free = GIB
    with pytest.raises(DeviceBusyError, match="others hold the device's memory"):
        watch(device).heed(MEMORY)


def test_a_verdict_that_rejects_waits_for_the_device_to_prove_itself(device: FakeDevice) -> None:
    said: list[Progress] = []
    emit = watch(device).gated(said.append)
    emit(REJECTS)
    assert said == [REJECTS]
    assert "answer" in device.asked
    device.says["memory"] = "1 of 512 words"
    with pytest.raises(DeviceSickError):
        emit(REJECTS)
    assert said == [REJECTS]


def test_a_verdict_that_accepts_waits_for_nobody(device: FakeDevice) -> None:
    said: list[Progress] = []
    watch(device).gated(said.append)(ACCEPTS)
    assert (said, device.asked) == ([ACCEPTS], [])


def test_before_a_kernel_the_driver_is_asked_and_the_device_left_alone(device: FakeDevice) -> None:
    driver = FakeDriver()
    seen = watch(device, driver)
    seen.glance()
    driver.state = DeviceState(xids=(79,))
    with pytest.raises(DeviceSickError, match="fell off the bus"):
        seen.glance()
    assert device.asked == []


def test_a_device_that_never_answers_ends_the_process_and_says_so(device: FakeDevice) -> None:
    """What ends the process in earnest is called from another thread; here it lets go instead."""
    hung: list[HealthReport] = []
    free = threading.Event()

    class Hung(FakeDevice):
        def answer(self) -> str:
            free.wait(60)
            return ""

    seen = watch(Hung())
    seen.answer_s = 0.2

    def give_up(report: HealthReport) -> None:
        hung.append(report)
        free.set()

    seen.hung = give_up
    seen.examine("start")
    assert "did not answer within 0.2 s" in hung[0].reason


def test_an_examination_disturbs_no_timing(tmp_path: Path) -> None:
    lock = DeviceLock.of(tmp_path, "GPU-1")
    held: list[Held] = []

    class Looking(FakeDevice):
        def answer(self) -> str:
            held.append(lock.held)
            return ""

    Watch(Looking(), FakeDriver(), lock).examine("start")
    assert held == [Held.SHARED]
    lock.close()


# -- the referee's own context -------------------------------------------------------------------


def test_on_a_processor_a_refusal_is_a_refusal() -> None:
    context_demand(torch.device("cpu"), ValueError("no such axis"))


def test_a_broken_context_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", broken)
    with pytest.raises(ContextLostError, match="CUBLAS_STATUS_EXECUTION_FAILED"):
        context_demand(torch.device("cuda:0"), RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED\nat"))


def test_eager_that_lost_its_device_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(device: object, error: BaseException) -> None:
        raise ContextLostError(str(error))

    def reference(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")

    monkeypatch.setattr("verifier.referee.eager.context_demand", lost)
    eager = Eager(reference, torch.device("cpu"), allow_tf32=False)
    with pytest.raises(ContextLostError, match="uncorrectable ECC"):
        eager.call([torch.ones(2)])


def test_waiting_for_memory_gives_way_to_who_times(device: FakeDevice, tmp_path: Path) -> None:
    lock, timer = DeviceLock.of(tmp_path, "GPU-1"), DeviceLock.of(tmp_path, "GPU-1")
    device.free = GIB
    seen = Watch(device, FakeDriver(), lock)
    seen.room_wait_s = 20.0
    timed: list[float] = []

    def time_it() -> None:
        with timer.exclusive():
            timed.append(time.monotonic())
        device.free = 139 * GIB

    thread = threading.Thread(target=time_it)
    with lock.shared():
        thread.start()
        assert seen.heed(MEMORY)
    thread.join()
    assert timed
    lock.close()
    timer.close()
