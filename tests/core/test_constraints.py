"""What the database itself refuses, whoever writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from kernelhub.core.models import Event, GateResult, Kernel, Measurement, Run, Task, Verdict
from tests import factories as make

pytestmark = pytest.mark.django_db


def refused(change: Any) -> bool:
    """Whether the database refuses the change, and leaves the transaction usable."""
    try:
        with transaction.atomic():
            change()
    except IntegrityError:
        return True
    return False


LATER = timezone.now() + timedelta(minutes=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"lease_until": LATER},
        {"heartbeat_at": LATER},
        {"node": None, "status": "running"},
        {"status": "finished"},
        {"status": "cancelled"},
        {"status": "errored", "finished_at": LATER},
        {"status": "asleep"},
        {"error_message": "why?"},
        {"lost_attempts": 1},
        {"max_attempts": 0},
    ],
)
def test_a_queued_run_holds_nothing_of_another_state(fields: dict[str, Any]) -> None:
    run = make.make_run()
    assert refused(lambda: Run.objects.filter(pk=run.pk).update(**fields))


@pytest.mark.parametrize("field", ["node", "lease_until", "heartbeat_at", "started_at"])
def test_a_running_run_has_its_node_and_its_lease(field: str) -> None:
    run = make.make_lease().run
    assert refused(lambda: Run.objects.filter(pk=run.pk).update(**{field: None}))


def test_a_finished_run_holds_no_lease() -> None:
    run = make.make_finished()
    assert refused(lambda: Run.objects.filter(pk=run.pk).update(lease_until=LATER))


def test_two_events_of_a_run_have_different_numbers() -> None:
    run = make.make_run()
    assert refused(lambda: Event.objects.create(run=run, seq=1, attempt=0, kind="log"))


@pytest.mark.parametrize("number", [0, 2, 13])
def test_a_gate_result_carries_the_number_of_its_gate(number: int) -> None:
    verdict = make.make_finished().verdict
    gate = verdict.gates.get(gate="G1")
    gate.delete()
    gate.pk, gate.number = None, number
    assert refused(gate.save)


def test_a_verdict_has_each_gate_once() -> None:
    gate = make.make_finished().verdict.gates.get(gate="G1")
    gate.pk = None
    assert refused(gate.save)


def test_a_run_has_one_verdict() -> None:
    verdict = make.make_finished().verdict
    verdict.pk = None
    verdict._state.adding = True
    assert refused(lambda: verdict.save(force_insert=True))


def _measured(verdict: Verdict, **fields: Any) -> Measurement:
    values = {"latency_ms": 1.0, "low_ms": 0.9, "high_ms": 1.1, "n": 30, **fields}
    return Measurement(verdict=verdict, workload="n=64", subject="kernel", **values)


def test_a_speedup_exists_only_under_an_accepted_verdict() -> None:
    accepted, rejected = make.make_finished(), make.make_finished(failed=("G1",))
    assert not refused(_measured(accepted.verdict, speedup=2.0).save)
    assert refused(_measured(rejected.verdict, speedup=2.0).save)
    assert not refused(_measured(rejected.verdict).save)


@pytest.mark.parametrize("fields", [{"low_ms": 1.05}, {"low_ms": 0.0}, {"n": 0}, {"speedup": 0.0}])
def test_a_measurement_lies_in_its_own_interval(fields: dict[str, Any]) -> None:
    assert refused(_measured(make.make_finished().verdict, **fields).save)


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        (Verdict, "outcome", "accepted"),
        (Verdict, "duration_ms", 1.0),
        (Verdict, "document", {}),
        (GateResult, "summary", "all is well"),
        (Measurement, "latency_ms", 1.05),
        (Event, "payload", {}),
        (Kernel, "source", "pass"),
        (Task, "reference", "pass"),
        (Task, "contract", {}),
        (Task, "digest", "0" * 64),
    ],
)
def test_facts_never_change(model: type[Any], field: str, value: object) -> None:
    run = make.make_finished(failed=("G1",), measurements=(make.measurement_record(),))
    assert run.verdict.measurements.update(note="") == 1  # no change is no offence
    assert refused(lambda: model.objects.update(**{field: value}))


def test_what_a_task_is_called_may_change() -> None:
    task = make.make_task()
    assert not refused(lambda: Task.objects.filter(pk=task.pk).update(title="Softmax by rows"))


def test_a_task_has_one_current_revision() -> None:
    task = make.make_task()
    assert refused(lambda: make.make_task(task.suite, task.slug, revision=2))
