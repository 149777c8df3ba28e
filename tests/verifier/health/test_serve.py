"""What `python -m verifier serve` says and does when its device is found sick."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from typing import Any, Self

import pytest

from tests.verifier.health.test_examination import FakeDevice, FakeDriver
from verifier.commands import serve
from verifier.commands.exit_codes import ExitCode
from verifier.device_lock import DeviceLock
from verifier.health.watch import Watch
from verifier.records import DeviceMode, Environment
from verifier.subject import Reply, ReplyKind

ENVIRONMENT = Environment(DeviceMode.CUDA, "H200", "GPU-1", "", "", "", "", "", "")
ARGS = argparse.Namespace(device="cuda:0", unsafe_no_sandbox=False, sharers=2)


class FakeSession:
    """A session on a device that is told how to be; ``judges`` is what judging a kernel does."""

    device = FakeDevice()
    judges: Callable[[Watch], None] = staticmethod(lambda watch: None)

    def __init__(self, *args: Any, sharers: int, **options: Any) -> None:
        self.environment = ENVIRONMENT
        self.watch = Watch(self.device, FakeDriver(), DeviceLock.alone(), sharers=sharers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def judge(self, job: Any, emit: Any, check: Any) -> None:
        type(self).judges(self.watch)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    fresh = FakeDevice()
    monkeypatch.setattr(FakeSession, "device", fresh)
    monkeypatch.setattr(serve, "Session", FakeSession)
    return fresh


Serve = Callable[[int], tuple[ExitCode, list[dict[str, Any]]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Serve:
    """Serves so many jobs; the exit code, and the lines that were said."""

    def serve_jobs(jobs: int) -> tuple[ExitCode, list[dict[str, Any]]]:
        lines = [json.dumps({"id": f"j{n}", "task": "t", "kernel": "k"}) for n in range(jobs)]
        stdin = io.TextIOWrapper(io.BytesIO("\n".join(lines).encode()))
        monkeypatch.setattr("sys.stdin", stdin)
        code = serve.run(ARGS)
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return serve_jobs


def events(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


def test_a_healthy_device_is_reported_before_the_verifier_is_ready(
    device: FakeDevice, run: Serve
) -> None:
    code, lines = run(0)
    assert (code, events(lines)) == (ExitCode.CLEAN, ["health", "ready"])


def test_on_a_sick_device_the_verifier_never_is_ready(device: FakeDevice, run: Serve) -> None:
    device.says["answer"] = "7 integers came out wrong"
    code, lines = run(1)
    assert (code, events(lines)) == (ExitCode.INFRASTRUCTURE, ["health"])


def test_a_job_on_a_device_that_falls_sick_is_no_verdict_and_the_verifier_ends(
    device: FakeDevice, run: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(watch: Watch) -> None:
        device.says["answer"] = RuntimeError("CUDA error: uncorrectable ECC error encountered")
        watch.heed(Reply(ReplyKind.CRASHED, "CUDA error"))

    monkeypatch.setattr(FakeSession, "judges", staticmethod(crash))
    code, lines = run(2)
    assert code is ExitCode.INFRASTRUCTURE
    assert events(lines) == ["health", "ready", "error", "health"]
    assert lines[2]["payload"]["kind"] == "infrastructure"
    assert "uncorrectable ECC" in lines[2]["payload"]["message"]
    assert lines[2]["payload"]["health"]["checks"]


def test_after_a_crash_on_a_healthy_device_the_next_job_is_judged(
    device: FakeDevice, run: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[bool] = []

    def crash(watch: Watch) -> None:
        judged.append(watch.heed(Reply(ReplyKind.CRASHED, "CUDA error")))

    monkeypatch.setattr(FakeSession, "judges", staticmethod(crash))
    code, _ = run(2)
    assert (code, judged) == (ExitCode.CLEAN, [False, False])


def test_a_referee_that_lost_its_context_is_followed_by_an_examination(
    device: FakeDevice, run: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(watch: Watch) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(FakeSession, "judges", staticmethod(lose))
    _, lines = run(1)
    assert events(lines) == ["health", "ready", "error", "health"]
