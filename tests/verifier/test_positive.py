"""Defence 1: seven planted violators, one for each hard family, each with an honest twin."""

from __future__ import annotations

import pytest

from verifier.contract import load_task
from verifier.defences.positive import SERIAL, VIOLATORS, Planted
from verifier.records import DeviceMode, GateId, GateStatus, Outcome
from verifier.session import Job, Session


def test_there_are_seven_families_and_each_has_a_gate_of_its_own() -> None:
    assert len({planted.family for planted in VIOLATORS}) == 7
    assert len({planted.gate for planted in VIOLATORS}) == 7


@pytest.mark.parametrize("planted", VIOLATORS, ids=lambda planted: planted.kernel)
def test_each_has_a_task_and_a_twin_that_differs(planted: Planted) -> None:
    load_task(planted.task_folder)
    assert planted.path(twin=False).read_text() != planted.path(twin=True).read_text()


def test_only_the_race_waits_for_a_gpu() -> None:
    waiting = [p.gate for p in VIOLATORS if p.not_here(DeviceMode.CPU_INTERPRET)]
    assert waiting == [GateId.DETERMINISM]
    assert not any(planted.not_here(DeviceMode.CUDA) for planted in VIOLATORS)
    assert "one after the other" in SERIAL


SHOWN = [p for p in VIOLATORS if not p.not_in_interpreter]


@pytest.mark.parametrize("planted", SHOWN, ids=lambda planted: planted.kernel)
def test_the_loose_test_accepts_it_and_its_gate_fails_it(
    verifier_session: Session, planted: Planted
) -> None:
    job = Job(planted.task_folder, planted.path(twin=False), seed=3, gates=(planted.gate,))
    verdict = verifier_session.judge(job)
    assert verdict.loose is not None
    assert verdict.loose.accepted, verdict.loose.detail
    result = verdict.gates[planted.gate.number - 1]
    assert result.status is GateStatus.FAIL, result.reason


@pytest.mark.parametrize("planted", VIOLATORS, ids=lambda planted: planted.kernel)
def test_its_twin_is_accused_of_nothing(verifier_session: Session, planted: Planted) -> None:
    verdict = verifier_session.judge(
        Job(planted.task_folder, planted.path(twin=True), seed=3, timed=False)
    )
    told = [(r.gate.value, r.reason) for r in verdict.gates if r.status is not GateStatus.PASS]
    assert verdict.outcome is Outcome.ACCEPTED, told
