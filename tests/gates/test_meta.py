"""Each gate is documented, has a violator that the loose test accepts, and an honest twin.

This is measured through the real pipeline and sandbox, not declared: every file is judged.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.gates.caged import ROOT, task_folder
from verifier.pipeline import GATES
from verifier.records import GateId, GateStatus, Outcome, Verdict
from verifier.session import Job, Session

SEED = 20261130


def kernels(gate: GateId, role: str) -> list[Path]:
    return sorted((ROOT / f"tests/gates/g{gate.number:02d}").glob(f"{role}*.py"))


def judge(session: Session, kernel: Path, *gates: GateId) -> Verdict:
    """By all gates, or by these until one fails."""
    job = Job(task_folder(kernel), kernel, seed=SEED, timed=False)
    return session.judge(replace(job, gates=gates, fail_fast=True) if gates else job)


def all_kernels(role: str) -> list[tuple[GateId, Path]]:
    return [(gate, kernel) for gate in GateId for kernel in kernels(gate, role)]


def name(value: GateId | Path) -> str:
    return value.stem if isinstance(value, Path) else value.value


def test_the_pipeline_holds_the_twelve_gates_in_order() -> None:
    assert [gate.info.id for gate in GATES] == list(GateId)


@pytest.mark.parametrize("gate", list(GateId), ids=lambda gate: gate.value)
def test_each_gate_has_a_page_a_violator_and_a_twin(gate: GateId) -> None:
    assert list((ROOT / "docs/gates").glob(f"{gate.number:02d}-*.md"))
    assert kernels(gate, "violator")
    assert kernels(gate, "twin")


@pytest.mark.parametrize(("gate", "kernel"), all_kernels("violator"), ids=name)
def test_a_violator_passes_the_loose_test_and_fails_its_gate(
    verifier_session: Session, gate: GateId, kernel: Path
) -> None:
    verdict = judge(verifier_session, kernel, gate)
    assert verdict.loose is not None
    assert verdict.loose.accepted, verdict.loose.detail
    result = verdict.gates[gate.number - 1]
    assert result.status is GateStatus.FAIL, (result.status, result.reason)
    assert verdict.illusion


@pytest.mark.parametrize(("gate", "kernel"), all_kernels("twin"), ids=name)
def test_an_honest_twin_passes_its_gate_and_is_accused_by_none(
    verifier_session: Session, gate: GateId, kernel: Path
) -> None:
    verdict = judge(verifier_session, kernel)
    accused = [(r.gate.value, r.status.value, r.reason) for r in verdict.gates if _open(r.status)]
    assert not accused
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.gates[gate.number - 1].status is GateStatus.PASS


def _open(status: GateStatus) -> bool:
    return status not in {GateStatus.PASS, GateStatus.NOT_APPLICABLE}
