"""One warm sandbox for all tests here; each test brings kernels of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import torch

from verifier.candidate import processes
from verifier.candidate.client import Candidate, Sandbox
from verifier.candidate.limits import MIB, Limits
from verifier.records import DeviceMode

HOSTILE: Final = Path(__file__).parents[2] / "adversarial" / "sandbox"
LIMITS: Final = Limits(
    call_s=10.0,
    load_s=3.0,
    memory_bytes=512 * MIB,
    shared_bytes=256 * MIB,
    output_bytes=16 * MIB,
    scratch_bytes=64 * MIB,
    processes=64,
    crashes=3,
)
HONEST: Final = b"def run(x):\n    return x * 2\n"

Load = Callable[[bytes], Candidate]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The strongest sandbox that works on this machine."""
    with Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu", limits=LIMITS) as opened:
        yield opened


@pytest.fixture
def load(sandbox: Sandbox) -> Iterator[Load]:
    """Loads a source; closes what it loaded when the test ends."""
    loaded: list[Candidate] = []

    def load_source(source: bytes) -> Candidate:
        loaded.append(sandbox.load(source=source, entry="run"))
        return loaded[-1]

    yield load_source
    for candidate in loaded:
        candidate.close()


@pytest.fixture
def hostile(load: Load) -> Callable[[str], Candidate]:
    """Loads one of the hostile kernels by name."""
    return lambda name: load((HOSTILE / f"{name}.py").read_bytes())


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(1.0, 7.0)


def residents(sandbox: Sandbox) -> int:
    """Processes that the sandbox consists of right now."""
    server = sandbox._server
    assert server is not None
    return len(processes.census(server.pid).pids)
