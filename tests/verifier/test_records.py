"""Records: exact round trips, and states that cannot be built."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.records import (
    NOT_ASKED,
    CallDigest,
    CaseRecord,
    Counterexample,
    DeviceMode,
    Environment,
    GateId,
    GateResult,
    GateStatus,
    KernelRef,
    Language,
    LooseResult,
    Measurement,
    Outcome,
    RecordError,
    TaskRef,
    Verdict,
    from_json,
    to_json,
)

CASE = CaseRecord("tail", {"N": 129}, {"T": "float32"}, "normal", 7, {"axis": [1, 2]})
EXAMPLE = Counterexample(CASE, "wrong", (CallDigest("a", "b"),), "out", (0, 3), "1.0", "nan")
ENVIRONMENT = Environment(
    DeviceMode.CPU_INTERPRET, "cpu", "", "3.11", "2.13", "3.7.1", "2.4", "linux", "none"
)


def gate(number: int, status: GateStatus = GateStatus.PASS, **fields: Any) -> GateResult:
    by_status: dict[GateStatus, dict[str, Any]] = {
        GateStatus.PASS: {"passed": 1},
        GateStatus.FAIL: {"reason": "wrong", "failed": 1, "counterexample": EXAMPLE},
    }
    defaults = by_status.get(status, {"reason": "because"})
    return GateResult(tuple(GateId)[number - 1], status, "1 case", **{**defaults, **fields})


def verdict(*statuses: GateStatus, **fields: Any) -> Verdict:
    wanted = [*statuses, *[GateStatus.PASS] * (12 - len(statuses))]
    return Verdict(
        task=TaskRef("softmax", "d"),
        kernel=KernelRef("s", "run", Language.TRITON, "source"),
        seed=1,
        gates=tuple(gate(i, status) for i, status in enumerate(wanted, start=1)),
        loose=LooseResult(True, 5, 1e-4, 1e-4, {"N": 1}, {"T": "float32"}),
        environment=ENVIRONMENT,
        started_at="2026-01-01T00:00:00+00:00",
        duration_ms=1.0,
        **fields,
    )


def test_a_verdict_survives_json_exactly() -> None:
    original = verdict(GateStatus.FAIL, GateStatus.NOT_APPLICABLE, GateStatus.INCONCLUSIVE)
    assert from_json(Verdict, json.loads(json.dumps(to_json(original)))) == original


@given(
    st.builds(
        CaseRecord,
        label=st.text(),
        dims=st.dictionaries(st.text(min_size=1), st.integers(0, 2**40)),
        dtypes=st.dictionaries(st.text(min_size=1), st.sampled_from(["float32", "bfloat16"])),
        fill=st.text(),
        seed=st.integers(0, 2**63 - 1),
        params=st.dictionaries(st.text(), st.lists(st.integers()) | st.text() | st.booleans()),
    )
)
def test_any_case_survives_json(case: CaseRecord) -> None:
    assert from_json(CaseRecord, json.loads(json.dumps(to_json(case)))) == case


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((), Outcome.ACCEPTED),
        ((GateStatus.PASS, GateStatus.NOT_APPLICABLE), Outcome.ACCEPTED),
        ((GateStatus.NOT_APPLICABLE,), Outcome.UNDECIDED),
        ((GateStatus.INCONCLUSIVE,), Outcome.UNDECIDED),
        ((GateStatus.ERROR,), Outcome.UNDECIDED),
        ((GateStatus.FAIL, GateStatus.ERROR), Outcome.REJECTED),
        ((GateStatus.NOT_APPLICABLE,) * 12, Outcome.UNDECIDED),
    ],
)
def test_outcome_follows_from_the_gates(statuses: tuple[GateStatus, ...], outcome: Outcome) -> None:
    assert verdict(*statuses).outcome is outcome


def test_where_agreement_was_not_asked_for_other_gates_decide() -> None:
    whole = verdict(GateStatus.NOT_APPLICABLE)
    first = replace(whole.gates[0], reason=NOT_ASKED)
    assert replace(whole, gates=(first, *whole.gates[1:])).outcome is Outcome.ACCEPTED


def test_an_illusion_is_accepted_by_the_loose_test_and_rejected_by_the_gates() -> None:
    assert verdict(GateStatus.FAIL).illusion
    assert not verdict().illusion
    assert not verdict(GateStatus.INCONCLUSIVE).illusion


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (GateStatus.NOT_APPLICABLE, {"reason": ""}),
        (GateStatus.FAIL, {"counterexample": None}),
        (GateStatus.PASS, {"counterexample": EXAMPLE}),
        (GateStatus.PASS, {"hard": True}),
        (GateStatus.PASS, {"passed": 0}),
        (GateStatus.PASS, {"failed": 1}),
    ],
)
def test_an_inconsistent_gate_result_cannot_be_built(
    status: GateStatus, fields: dict[str, Any]
) -> None:
    with pytest.raises(RecordError):
        gate(1, status, **fields)


def test_a_verdict_holds_each_gate_once_in_order() -> None:
    good = verdict()
    with pytest.raises(RecordError, match="twelve gates"):
        replace(good, gates=good.gates[::-1])


def test_a_speedup_without_passed_gates_cannot_be_built() -> None:
    fast = Measurement("usual", "kernel", 1.0, 0.9, 1.1, 10, speedup=2.0)
    assert verdict(measurements=(fast,)).correct
    with pytest.raises(RecordError, match="speedup"):
        verdict(GateStatus.FAIL, measurements=(fast,))


def test_unknown_fields_and_wrong_kinds_are_named_with_their_path() -> None:
    document = to_json(verdict())
    document["gates"][2]["bogus"] = 1
    document["seed"] = "1"
    with pytest.raises(RecordError, match=r"bogus.*gates\[2\]") as caught:
        from_json(Verdict, document)
    assert "'1' is not a int @ Verdict.seed" in str(caught.value)


def test_reading_records_loads_no_torch() -> None:
    code = "import sys, verifier.records; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
