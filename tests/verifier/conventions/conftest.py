"""A warm sandbox, and kernels of each convention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from verifier.candidate.client import Candidate, Sandbox
from verifier.contract import Contract, load_task
from verifier.conventions.choose import choose
from verifier.session import Session

KERNELS: Final = Path(__file__).parent / "kernels"
SOFTMAX: Final = (KERNELS / "softmax.cu").read_text()
ROWS: Final = Path(__file__).parents[2] / "gates" / "tasks" / "row_softmax"

Load = Callable[..., Candidate]


@pytest.fixture(scope="package")
def sandbox(verifier_session: Session) -> Sandbox:
    return verifier_session.sandbox


@pytest.fixture
def load(sandbox: Sandbox) -> Iterator[Load]:
    """Loads a source for a contract, as its convention has it."""
    loaded: list[Candidate] = []

    def load_source(contract: Contract, source: str, **changes: Any) -> Candidate:
        options = choose(contract, source).options()
        loaded.append(sandbox.load(source=source.encode(), **{**options, **changes}))
        return loaded[-1]

    yield load_source
    for candidate in loaded:
        candidate.close()


@pytest.fixture(scope="package")
def rows() -> Contract:
    """Softmax over rows of x[M, N], into y, in dtype T."""
    return load_task(ROWS).contract
