"""One warm sandbox for the whole corpus; each kernel is judged once, when a test first asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from benchmarks.fuzzoracle.suite import HERE, CorpusEntry
from verifier.records import Verdict
from verifier.session import Job, Session

SEED = 7


@dataclass
class Judge:
    """Verdicts of corpus kernels, remembered."""

    session: Session
    _verdicts: dict[str, Verdict] = field(default_factory=dict)

    def __call__(self, entry: CorpusEntry) -> Verdict:
        if entry.label not in self._verdicts:
            job = Job(HERE / "tasks" / entry.task, entry.path, seed=SEED, timed=False)
            self._verdicts[entry.label] = self.session.judge(job)
        return self._verdicts[entry.label]


@pytest.fixture(scope="session")
def verifier_session() -> Iterator[Session]:
    with Session("cpu") as session:
        yield session


@pytest.fixture(scope="session")
def judge(verifier_session: Session) -> Judge:
    return Judge(verifier_session)
