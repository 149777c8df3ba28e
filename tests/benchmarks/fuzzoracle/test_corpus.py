"""The corpora through the real pipeline and sandbox: each bug is flagged, each control is clean.

Every loose verdict here is measured; nothing of what the index declares about a kernel decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verifier.records import GateId, GateStatus, Outcome, Verdict
from verifier.session import Job, Session

SUITE = Path(__file__).resolve().parents[3] / "benchmarks/fuzzoracle"
SEED = 20261130


def entries(group: str) -> list[dict[str, Any]]:
    index = json.loads((SUITE / "kernels" / group / "index.json").read_text())
    kernels: list[dict[str, Any]] = index["kernels"]
    return kernels


ALL = [(group, entry) for group in ("p1_replica", "illusions26") for entry in entries(group)]


class Judge:
    """One warm session, and the verdicts that it has reached so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def __call__(self, group: str, entry: dict[str, Any]) -> Verdict:
        key = group, entry["label"]
        if key not in self._verdicts:
            kernel = SUITE / "kernels" / group / f"{entry['label']}.py"
            job = Job(SUITE / "tasks" / entry["task"], kernel, seed=SEED, timed=False)
            self._verdicts[key] = self._session.judge(job)
        return self._verdicts[key]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Session("cpu") as session:
        yield Judge(session)


def test_the_replica_has_16_controls_and_10_bugs_over_14_ops() -> None:
    kernels = entries("p1_replica")
    roles = [entry["role"] for entry in kernels]
    assert (roles.count("control"), roles.count("bug"), len(roles)) == (16, 10, 26)
    assert len({entry["task"] for entry in kernels}) == 14


def test_each_of_the_26_ops_has_a_control_and_an_illusion() -> None:
    kernels = entries("illusions26")
    flash = "op-flash-attention"
    controls = {entry["task"] for entry in kernels if entry["role"] == "control"} - {flash}
    illusions = {entry["task"] for entry in kernels if entry["role"] == "illusion"} - {flash}
    assert len(controls) == 26
    assert illusions == controls


@pytest.mark.parametrize(
    ("group", "entry"), ALL, ids=[f"{group}-{entry['label']}" for group, entry in ALL]
)
def test_the_verdict_is_right(judge: Judge, group: str, entry: dict[str, Any]) -> None:
    verdict = judge(group, entry)
    reasons = [(r.gate.value, r.reason) for r in verdict.gates if r.status is GateStatus.FAIL]
    if entry["role"] == "control":
        assert verdict.outcome is Outcome.ACCEPTED, (entry["label"], reasons, verdict.gates)
        return
    assert verdict.outcome is Outcome.REJECTED, entry["label"]
    if entry["role"] == "illusion":
        assert verdict.illusion, (entry["label"], verdict.loose)


def test_every_gate_catches_something(judge: Judge) -> None:
    caught = {
        result.gate
        for group, entry in ALL
        if entry["role"] != "control"
        for result in judge(group, entry).gates
        if result.status is GateStatus.FAIL
    }
    assert caught == set(GateId)
