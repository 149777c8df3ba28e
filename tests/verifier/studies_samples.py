"""Small studies for tests: each with one of everything that a page must be able to show."""

from __future__ import annotations

from verifier.records import CaseNote, DeviceMode, Environment, GateId, GateStatus
from verifier.studies import (
    AgreementRow,
    AgreementStudy,
    AuditItem,
    Control,
    ControlGate,
    ControlRow,
    ControlSweep,
    HandAudit,
    Judgement,
    Origin,
    PlantedRow,
    PositiveControl,
    Swayed,
    ThresholdPoint,
    ThresholdSweep,
)

CPU = Environment(
    DeviceMode.CPU_INTERPRET, "a CPU", "", "3.11", "2.13", "3.7", "2.4", "Linux", "bubblewrap"
)
ORIGIN = Origin("python -m verifier ...", "2026-11-30T16:00:00+00:00", 12.5, CPU, 0)


def gate(
    gate_id: GateId, status: GateStatus = GateStatus.PASS, reason: str = "", case: str = ""
) -> ControlGate:
    notes = (CaseNote(status, reason, 1),) if reason else ()
    return ControlGate(gate_id, status, int(status is GateStatus.PASS), reason, case, notes)


def control_row(
    control: Control = Control.EAGER,
    task: str = "softmax",
    *exceptions: ControlGate,
    error: str = "",
) -> ControlRow:
    """All gates pass but those given; no gate was judged where there is an error."""
    odd = {one.gate: one for one in exceptions}
    gates = () if error else tuple(odd.get(one, gate(one)) for one in GateId)
    return ControlRow("fuzzoracle", task, "d" * 64, control, gates, 1.5, error)


def control_sweep(*rows: ControlRow) -> ControlSweep:
    return ControlSweep(ORIGIN, "a copy of the contract", rows or (control_row(),))


def planted(
    status: GateStatus = GateStatus.FAIL,
    *,
    loose: bool = True,
    twin_accused: tuple[str, ...] = (),
    not_here: str = "",
) -> PlantedRow:
    reason = "non-finite values differ"
    return PlantedRow(
        "a maximum that swallows NaN",
        "nan_max",
        GateId.NONFINITE,
        status,
        reason,
        True,
        loose,
        twin_accused,
        not_here,
    )


def positive_control(*rows: PlantedRow) -> PositiveControl:
    return PositiveControl(ORIGIN, rows or (planted(),))


def point(
    factor: float, floor: float, wrong_rejected: int, controls_accused: int = 0
) -> ThresholdPoint:
    return ThresholdPoint(
        factor, floor, 10, wrong_rejected, 1, 8, controls_accused, 100, 40, 90, controls_accused
    )


def threshold_sweep(accused: int = 0) -> ThresholdSweep:
    points = tuple(
        point(factor, floor, rejected, accused if factor == 2 else 0)
        for factor, rejected in ((1.0, 10), (2.0, 10), (8.0, 7))
        for floor in (0.5, 1.0)
    )
    swayed = (Swayed("rmsnorm_eps", True, ("G10",), ((1.0, 0.5), (1.0, 1.0))),)
    return ThresholdSweep(ORIGIN, ("illusions26",), (2.0, 1.0), points, swayed)


def agreement_row(
    kernel: str, ours: bool | None, theirs: bool | None, explanation: str = ""
) -> AgreementRow:
    return AgreementRow(kernel, "softmax", ours, theirs, "ours says", "theirs says", explanation)


def agreement_study(*rows: AgreementRow) -> AgreementStudy:
    default = (
        agreement_row("a", True, True),
        agreement_row("b", False, False),
        agreement_row("c", True, False),
    )
    return AgreementStudy(ORIGIN, "KernelBench 423217d", 5, rows or default)


def audit_item(
    number: int, verdict: GateStatus = GateStatus.FAIL, **judgements: Judgement
) -> AuditItem:
    return AuditItem(
        f"item-{number}", "abc", "softmax", GateId.RANGE, "reduction", verdict, judgements
    )


def hand_audit(*items: AuditItem) -> HandAudit:
    right, wrong = Judgement.RIGHT, Judgement.WRONG
    default = (
        audit_item(1, ann=right, bob=right),
        audit_item(2, ann=wrong, bob=wrong),
        audit_item(3, GateStatus.PASS, ann=right, bob=wrong),
    )
    population = {"G10 · reduction · FAIL": 40, "G10 · reduction · PASS": 9}
    return HandAudit(ORIGIN, ("ann", "bob"), population, items or default)
