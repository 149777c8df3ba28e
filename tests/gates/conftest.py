"""One warm sandbox for all gate tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gates.inprocess import CUDA, device
from verifier.candidate.client import Sandbox
from verifier.records import DeviceMode
from verifier.session import Session


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """On the CPU the one that kernels are judged in anyway."""
    if not CUDA:
        session: Session = request.getfixturevalue("verifier_session")
        yield session.sandbox
        return
    with Sandbox.open(mode=DeviceMode.CUDA, device=str(device())) as opened:
        yield opened
