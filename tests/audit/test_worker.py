"""The worker with the real verifier behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from verifier.audit.worker import Refused, Worker
from verifier.records import GateStatus

ROOT = Path(__file__).resolve().parents[2]
JOB = {
    "task": str(ROOT / "tests/gates/tasks/relu"),
    "kernel": str(ROOT / "tests/gates/g02/twin_relu.py"),
    "seed": 1,
    "gates": ["G8"],
    "timed": False,
}


def test_a_worker_starts_judges_and_says_what_it_cannot_judge() -> None:
    worker = Worker(0, "cpu", ("--sharers", "2"))
    try:
        verdict = worker.judge("kernel", JOB, 60.0)
        with pytest.raises(Refused, match="no such") as refused:
            worker.judge("nothing", {**JOB, "task": str(ROOT / "no such task")}, 60.0)
    finally:
        worker.end()
    assert [g.gate for g in verdict.gates if g.status is GateStatus.PASS] == ["G8"]
    assert refused.value.kind == "task"
