"""Studies of the verifier: what they conclude from their rows, and how they are stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verifier.studies_samples import (
    ORIGIN,
    agreement_row,
    agreement_study,
    audit_item,
    control_row,
    control_sweep,
    gate,
    hand_audit,
    planted,
    positive_control,
    threshold_sweep,
)
from verifier.records import DeviceMode, GateId, GateStatus, RecordError
from verifier.studies import Control, ControlSweep, Judgement, load, store, stored, study_path

ALL = (control_sweep, positive_control, threshold_sweep, agreement_study, hand_audit)


@pytest.mark.parametrize("make", ALL)
def test_a_stored_study_comes_back_as_it_was(make: Any, tmp_path: Path) -> None:
    study = make()
    path = store(study, study_path(type(study), DeviceMode.CPU_INTERPRET, tmp_path))
    assert load(type(study), path) == study


def test_studies_of_a_gpu_are_listed_before_those_of_the_interpreter(tmp_path: Path) -> None:
    study = control_sweep()
    gpu = replace(ORIGIN.environment, mode=DeviceMode.CUDA)
    on_gpu = replace(study, origin=replace(ORIGIN, environment=gpu))
    for one in (study, on_gpu):
        store(one, study_path(ControlSweep, one.origin.environment.mode, tmp_path))
    modes = [one.origin.environment.mode for one in stored(ControlSweep, tmp_path)]
    assert modes == [DeviceMode.CUDA, DeviceMode.CPU_INTERPRET]


def test_nothing_stored_is_an_empty_list(tmp_path: Path) -> None:
    assert stored(ControlSweep, tmp_path) == []


def test_what_is_no_study_is_refused_by_name(tmp_path: Path) -> None:
    path = study_path(ControlSweep, DeviceMode.CUDA, tmp_path)
    path.write_text('{"rows": 3}')
    with pytest.raises(RecordError, match="rows"):
        stored(ControlSweep, tmp_path)


def test_a_study_of_an_older_gate_set_is_not_current() -> None:
    assert ORIGIN.current
    assert not replace(ORIGIN, gate_set=ORIGIN.gate_set - 1).current


# --- the control sweep


@pytest.mark.parametrize("status", [GateStatus.FAIL, GateStatus.INCONCLUSIVE, GateStatus.ERROR])
def test_a_control_that_is_not_simply_passed_is_an_exception(status: GateStatus) -> None:
    accused = gate(GateId.SHAPES, status, "some reason")
    sweep = control_sweep(control_row(Control.EAGER, "softmax", accused))
    assert [one.gate for _, one in sweep.exceptions] == [GateId.SHAPES]
    assert not sweep.clean


def test_a_gate_that_does_not_apply_accuses_nobody_and_gives_its_reason() -> None:
    absent = gate(GateId.ACCUMULATION, GateStatus.NOT_APPLICABLE, "the op declares no sum")
    sweep = control_sweep(control_row(Control.EAGER, "relu", absent))
    assert sweep.clean
    assert sweep.reasons(GateId.ACCUMULATION) == {"the op declares no sum": 1}


def test_a_control_that_could_not_be_judged_leaves_the_sweep_unclean() -> None:
    sweep = control_sweep(control_row(error="reference.py: no such file"))
    assert not sweep.clean
    assert len(sweep.unjudged) == 1


def test_a_control_that_nothing_was_judged_of_is_not_clean() -> None:
    absent = tuple(gate(one, GateStatus.NOT_APPLICABLE, "why") for one in GateId)
    assert not control_row(Control.EAGER, "odd", *absent).clean


def test_each_control_is_counted_by_itself() -> None:
    failed = gate(GateId.LAYOUT, GateStatus.FAIL, "off")
    sweep = control_sweep(control_row(), control_row(Control.COMPILE, "softmax", failed))
    assert sweep.counts(Control.EAGER)[GateId.LAYOUT] == {GateStatus.PASS: 1}
    assert sweep.counts(Control.COMPILE)[GateId.LAYOUT] == {GateStatus.FAIL: 1}


# --- the defences


def test_a_violator_that_fools_the_loose_test_and_is_caught_is_what_is_wanted() -> None:
    study = positive_control(planted())
    assert (study.caught, study.judged, study.clean) == (1, 1, True)


@pytest.mark.parametrize(
    "row",
    [
        planted(GateStatus.PASS),
        planted(loose=False),
        planted(twin_accused=("G1: off",)),
    ],
    ids=["it escapes", "the loose test sees it too", "its twin is accused"],
)
def test_the_positive_control_fails_when(row: Any) -> None:
    assert not positive_control(row).clean


def test_a_fault_that_cannot_show_here_is_neither_caught_nor_missed() -> None:
    study = positive_control(planted(), planted(GateStatus.PASS, not_here="races need a GPU"))
    assert (study.caught, study.judged, study.clean) == (1, 1, True)


def test_the_rule_in_use_is_one_point_of_the_curve() -> None:
    study = threshold_sweep()
    found = study.at(*study.default)
    assert found is not None
    assert found.recall.share == 1.0
    assert found.false_positives.share == 0.0


def test_agreement_is_counted_over_what_both_judged() -> None:
    rows = (
        agreement_row("a", True, True),
        agreement_row("b", True, False),
        agreement_row("c", None, None),
    )
    study = agreement_study(*rows)
    assert (study.share.hits, study.share.n) == (1, 2)
    assert [row.kernel for row in study.disagreements] == ["b"]


def test_the_hand_audits_error_rate_leaves_out_what_a_reader_was_unsure_of() -> None:
    study = hand_audit(
        audit_item(1, ann=Judgement.WRONG, bob=Judgement.WRONG),
        audit_item(2, ann=Judgement.RIGHT, bob=Judgement.RIGHT),
        audit_item(3, ann=Judgement.UNSURE, bob=Judgement.WRONG),
        audit_item(4, ann=Judgement.WRONG),
    )
    assert (study.errors.hits, study.errors.n) == (1, 2)


def test_one_readers_wrong_is_a_dispute_and_no_error() -> None:
    study = hand_audit(audit_item(1, ann=Judgement.RIGHT, bob=Judgement.WRONG))
    assert study.errors.hits == 0
    assert [item.id for item in study.disputed] == ["item-1"]


def test_escapes_and_false_accusations_are_counted_apart() -> None:
    study = hand_audit(
        audit_item(1, GateStatus.FAIL, ann=Judgement.WRONG, bob=Judgement.WRONG),
        audit_item(2, GateStatus.PASS, ann=Judgement.RIGHT, bob=Judgement.RIGHT),
    )
    by_verdict = study.errors_by_verdict()
    assert by_verdict[GateStatus.FAIL].hits == 1
    assert by_verdict[GateStatus.PASS].hits == 0


def test_the_readers_kappa_counts_unsure_as_a_word() -> None:
    study = hand_audit(
        audit_item(1, ann=Judgement.UNSURE, bob=Judgement.UNSURE),
        audit_item(2, ann=Judgement.RIGHT, bob=Judgement.RIGHT),
    )
    assert study.agreement.kappa == 1.0
