"""One warm sandbox for the whole corpus; each kernel is judged once, when a test first asks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from benchmarks.fuzzoracle.suite import HERE, CorpusEntry
from verifier.records import GateId, Verdict
from verifier.session import Job, Session

pytest.register_assert_rewrite("tests.benchmarks.fuzzoracle.verdicts")

SEED = 7


@dataclass
class Judge:
    """Verdicts of corpus kernels, remembered. Wrong ones are judged until something fails."""

    session: Session
    _verdicts: dict[str, Verdict] = field(default_factory=dict)

    def __call__(self, entry: CorpusEntry) -> Verdict:
        if entry.label not in self._verdicts:
            self._verdicts[entry.label] = self._judge(entry, fail_fast=entry.role != "control")
        return self._verdicts[entry.label]

    def by_gate(self, entry: CorpusEntry, gate: GateId) -> Verdict:
        """By one gate alone."""
        return self._judge(entry, gates=(gate,), fail_fast=True)

    def _judge(self, entry: CorpusEntry, **how: Any) -> Verdict:
        job = Job(HERE / "tasks" / entry.task, entry.path, seed=SEED, timed=False)
        return self.session.judge(replace(job, **how))


@pytest.fixture(scope="session")
def judge(verifier_session: Session) -> Judge:
    return Judge(verifier_session)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of a file with ``ENTRIES`` gets those of the role that it names."""
    entries: tuple[CorpusEntry, ...] = getattr(metafunc.module, "ENTRIES", ())
    for role in ("control", "bug", "illusion"):
        if role in metafunc.fixturenames:
            own = [entry for entry in entries if entry.role == role]
            metafunc.parametrize(role, own, ids=[entry.label for entry in own])
    if "witness" in metafunc.fixturenames:
        from tests.benchmarks.fuzzoracle.verdicts import WITNESSES

        by_label = {entry.label: entry for entry in entries}
        pairs = [(by_label[label], g) for g, label in WITNESSES.items() if label in by_label]
        metafunc.parametrize(("witness", "gate"), pairs, ids=[gate.value for _, gate in pairs])
