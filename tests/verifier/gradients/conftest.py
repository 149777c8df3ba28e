"""One warm verifier for all tests of gradients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifier.session import Session


@pytest.fixture(scope="package")
def session() -> Iterator[Session]:
    with Session("cpu") as opened:
        yield opened
