"""One warm verifier for all tests of gradients."""

from __future__ import annotations

import pytest

from verifier.session import Session


@pytest.fixture
def session(verifier_session: Session) -> Session:
    return verifier_session
