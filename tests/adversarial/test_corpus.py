"""Each hostile kernel is rejected by a gate that the index names, each honest twin is accepted.

Measured through the real pipeline and sandbox. A hostile kernel that is accepted as of today is an
expected failure with its reason; it stops being one on the day that it is caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.adversarial.corpus import (
    CLASSES,
    HERE,
    Attack,
    ThreatClass,
    Where,
    attacks,
    referred,
    twins,
)
from tests.gates.caged import task_folder
from tests.gates.inprocess import CUDA
from verifier.records import GateId, GateStatus, Outcome, Verdict
from verifier.session import Job, Session

SEED = 20261130
OTHER_DEVICE = {
    Where.DEVICE: "NO GPU: judged by `make sweep` on a machine that has one",
    Where.INTERPRETER: "NO INTERPRETER: the compiler runs the kernels here",
}


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if not CUDA:
        yield request.getfixturevalue("verifier_session")
        return
    with Session("cuda:0") as opened:
        yield opened


def judge(session: Session, kernel: Path, *gates: GateId, timed: bool = False) -> Verdict:
    """By all gates, or by these until one fails."""
    job = Job(task_folder(kernel), kernel, seed=SEED, timed=timed)
    return session.judge(replace(job, gates=gates, fail_fast=True) if gates else job)


def skip_elsewhere(where: Where) -> None:
    if where is (Where.INTERPRETER if CUDA else Where.DEVICE):
        pytest.skip(OTHER_DEVICE[where])


def name(value: object) -> str:
    if isinstance(value, ThreatClass):
        return value.slug
    return value.stem if isinstance(value, Path) else str(getattr(value, "name", value))


@pytest.mark.parametrize("each", CLASSES, ids=name)
def test_a_class_has_attackers_and_twins(each: ThreatClass) -> None:
    assert each.attacks or each.elsewhere
    assert each.twins or not each.attacks
    assert all(path.is_file() for path in referred(each))


def test_every_kernel_is_in_the_index() -> None:
    listed = {each.path(one) for each, one in attacks()} | {path for _, path in twins()}
    assert listed == {*HERE.glob("*/hostile_*.py"), *HERE.glob("*/twin_*.py")}


def expected(each: ThreatClass, one: Attack) -> pytest.ParameterSet:
    marks = (
        [pytest.mark.xfail(strict=True, raises=AssertionError, reason=one.escapes)]
        if one.escapes
        else []
    )
    return pytest.param(each, one, marks=marks, id=f"{each.slug}-{one.name}")


@pytest.mark.parametrize(("each", "one"), [expected(*pair) for pair in attacks()])
def test_a_hostile_kernel_is_caught_by_a_named_gate(
    session: Session, each: ThreatClass, one: Attack
) -> None:
    skip_elsewhere(one.where)
    asked = (GateId.AGREEMENT, *one.gates, *one.seen_in)
    verdict = judge(session, each.path(one), *asked, timed=one.timed)
    failed = {result.gate for result in verdict.gates if result.status is GateStatus.FAIL}
    assert failed & set(one.gates), [(r.gate, r.status, r.reason) for r in verdict.gates]
    assert verdict.outcome is Outcome.REJECTED
    if one.loose is not None:
        assert verdict.loose is not None
        assert verdict.loose.accepted is one.loose, verdict.loose.detail


@pytest.mark.parametrize(("each", "kernel"), list(twins()), ids=name)
def test_an_honest_twin_is_accepted(session: Session, each: ThreatClass, kernel: Path) -> None:
    skip_elsewhere(each.twins_where)
    verdict = judge(session, kernel)
    accused = [(r.gate.value, r.status.value, r.reason) for r in verdict.gates if _open(r.status)]
    assert not accused
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.loose is not None
    assert verdict.loose.accepted, verdict.loose.detail


def _open(status: GateStatus) -> bool:
    return status not in {GateStatus.PASS, GateStatus.NOT_APPLICABLE}
