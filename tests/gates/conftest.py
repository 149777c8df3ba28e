"""One warm sandbox for all gate tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gates.inprocess import CUDA, device
from verifier.candidate.client import Sandbox
from verifier.records import DeviceMode


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    mode = DeviceMode.CUDA if CUDA else DeviceMode.CPU_INTERPRET
    with Sandbox.open(mode=mode, device=str(device()), compiler=True) as opened:
        yield opened
