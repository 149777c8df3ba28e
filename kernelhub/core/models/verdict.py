from __future__ import annotations

import uuid
from functools import reduce
from operator import or_
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from kernelhub.core.choices import (
    GATE_CHOICES,
    GATE_STATUS_CHOICES,
    OUTCOME_CHOICES,
    VerdictSource,
)
from kernelhub.core.models.run import Run
from verifier.records import NEEDS_REASON, GateId, GateStatus, Outcome

_NUMBERED = reduce(or_, (Q(gate=gate.value, number=gate.number) for gate in GateId))
_ILLUSION = Q(loose_accepted=True, outcome=Outcome.REJECTED.value)


class Verdict(models.Model):
    """Write-once result of a run. A database trigger refuses any later change.

    ``document`` is the verifier's own record in full; the columns beside it are what lists
    filter and count by.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="verdict")
    source = models.CharField(
        max_length=10, choices=VerdictSource.choices, default=VerdictSource.FLEET
    )
    outcome = models.CharField(max_length=10, choices=OUTCOME_CHOICES)
    illusion = models.BooleanField()
    hard = models.BooleanField()
    loose_accepted = models.BooleanField(null=True)
    gate_set = models.PositiveIntegerField()
    verifier_version = models.CharField(max_length=20)
    environment = models.JSONField()
    document = models.JSONField()
    duration_ms = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [models.Index(fields=["outcome", "illusion"], name="verdict_outcome")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(outcome__in=[one.value for one in Outcome]), name="verdict_outcome_word"
            ),
            models.CheckConstraint(
                condition=Q(illusion=True) & _ILLUSION
                | Q(illusion=False) & (Q(loose_accepted=None) | ~_ILLUSION),
                name="verdict_illusion",
            ),
            models.CheckConstraint(
                condition=Q(hard=False) | Q(outcome=Outcome.REJECTED.value), name="verdict_hard"
            ),
            models.CheckConstraint(condition=Q(duration_ms__gte=0), name="verdict_duration"),
        ]

    def __str__(self) -> str:
        return self.outcome


class GateResult(models.Model):
    """One gate's finding, with the same invariants as the verifier's record of it."""

    id = models.BigAutoField(primary_key=True)
    verdict = models.ForeignKey(Verdict, on_delete=models.CASCADE, related_name="gates")
    gate = models.CharField(max_length=3, choices=GATE_CHOICES)
    number = models.PositiveSmallIntegerField()
    status = models.CharField(max_length=16, choices=GATE_STATUS_CHOICES)
    hard = models.BooleanField()
    summary = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    passed = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    duration_ms = models.FloatField()
    counterexample = models.JSONField(null=True, blank=True)
    notes = models.JSONField(default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["verdict", "number"]
        indexes: ClassVar = [models.Index(fields=["gate", "status"], name="gate_status")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["verdict", "gate"], name="gate_once"),
            models.CheckConstraint(condition=_NUMBERED, name="gate_number"),
            models.CheckConstraint(
                condition=~Q(status__in=sorted(one.value for one in NEEDS_REASON)) | ~Q(reason=""),
                name="gate_reason",
            ),
            models.CheckConstraint(
                condition=Q(status=GateStatus.FAIL.value, counterexample__isnull=False)
                | ~Q(status=GateStatus.FAIL.value) & Q(counterexample__isnull=True),
                name="gate_counterexample_only_with_fail",
            ),
            models.CheckConstraint(
                condition=Q(hard=False) | Q(status=GateStatus.FAIL.value),
                name="gate_hard_only_with_fail",
            ),
            models.CheckConstraint(
                condition=~Q(status=GateStatus.PASS.value) | Q(passed__gte=1, failed=0),
                name="gate_pass",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gate} {self.status}"


class Measurement(models.Model):
    """Median latency of one subject on one workload with its interval.

    A speedup exists only under an accepted verdict (a database trigger refuses it elsewhere).
    """

    id = models.BigAutoField(primary_key=True)
    verdict = models.ForeignKey(Verdict, on_delete=models.CASCADE, related_name="measurements")
    workload = models.TextField()
    subject = models.CharField(max_length=20)
    latency_ms = models.FloatField()
    low_ms = models.FloatField()
    high_ms = models.FloatField()
    n = models.PositiveIntegerField()
    speedup = models.FloatField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["verdict", "workload", "subject"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["verdict", "workload", "subject"], name="measurement_once"
            ),
            models.CheckConstraint(
                condition=Q(
                    low_ms__gt=0, low_ms__lte=F("latency_ms"), high_ms__gte=F("latency_ms")
                ),
                name="measurement_interval",
            ),
            models.CheckConstraint(condition=Q(n__gte=1), name="measurement_n"),
            models.CheckConstraint(
                condition=Q(speedup=None) | Q(speedup__gt=0), name="measurement_speedup"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload} {self.subject}"
