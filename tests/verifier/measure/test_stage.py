"""The whole timing of one kernel in its sandbox, with the CPU in the place of a device.

Its marks are clock readings and there are no graphs, so this says nothing of times: it shows that
the parts fit together.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tests.gates.inprocess import make_bench
from verifier.candidate.client import Candidate, Sandbox
from verifier.candidate.timed import TimedCandidate, TimingError
from verifier.contract import Workload
from verifier.measure import decide
from verifier.measure.latency import Stage
from verifier.measure.looks import WrongOutputError
from verifier.records import Clock, Measurement
from verifier.session import Session

HONEST = b"import torch\ndef run(x):\n    return torch.relu(x)\n"
STALE = b"""
import torch
kept = []
def run(x):
    kept.append(torch.relu(x))
    return kept[0].clone()
"""


@pytest.fixture
def sandbox(verifier_session: Session) -> Sandbox:
    return verifier_session.sandbox


@pytest.fixture(autouse=True)
def small_device(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(L2_cache_size=1 << 12, name="Voodoo 2", uuid="0")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(decide, "FLUSH_BYTES", 1 << 12)
    monkeypatch.setattr(decide, "MOST_FLUSH_BYTES", 1 << 12)
    monkeypatch.setattr(decide, "CALLS", 6)


def rows(candidate: Candidate) -> list[Measurement]:
    bench = make_bench("relu")
    stage = Stage(bench, Workload("small", bench.small_dims()), baselines=("eager",))
    try:
        return stage.measure(TimedCandidate(candidate))
    finally:
        candidate.close()


def test_kernel_and_eager_get_a_row_each_on_one_clock(sandbox: Sandbox) -> None:
    kernel, eager = rows(sandbox.load(source=HONEST, entry="run"))
    assert (kernel.subject, eager.subject) == ("kernel", "eager")
    assert kernel.rejected == ""
    assert kernel.clock is eager.clock
    assert kernel.clock in (Clock.EVENTS, Clock.REFEREE)  # a busy machine may not be believed


def test_a_kernel_that_works_once_is_wrong(sandbox: Sandbox) -> None:
    with pytest.raises(WrongOutputError, match="timed call"):
        rows(sandbox.load(source=STALE, entry="run"))


def test_a_kernel_that_ends_on_the_clock_has_no_row(sandbox: Sandbox) -> None:
    with pytest.raises(TimingError, match="status 3"):
        rows(sandbox.load(source=b"import os\ndef run(x):\n    os._exit(3)\n", entry="run"))
