from __future__ import annotations

import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from kernelhub.core.choices import ErrorKind, RunStatus
from kernelhub.core.models.campaign import Campaign
from kernelhub.core.models.kernel import Kernel
from kernelhub.core.models.node import Node
from kernelhub.core.models.task import Task

_UNLEASED = Q(lease_until=None) & Q(heartbeat_at=None)
_LEASED = Q(
    node__isnull=False,
    lease_until__isnull=False,
    heartbeat_at__isnull=False,
    started_at__isnull=False,
    attempt__gte=1,
)
_STATE = (
    Q(status=RunStatus.QUEUED) & _UNLEASED & Q(node=None, started_at=None, finished_at=None)
    | Q(status=RunStatus.RUNNING) & _LEASED & Q(finished_at=None)
    | Q(status=RunStatus.FINISHED, started_at__isnull=False, finished_at__isnull=False) & _UNLEASED
    | Q(status=RunStatus.ERRORED, finished_at__isnull=False) & _UNLEASED
    | Q(status=RunStatus.CANCELLED, finished_at__isnull=False, cancel_requested_at__isnull=False)
    & _UNLEASED
)


class Run(models.Model):
    """The judging of one kernel on one device: the only row with a life cycle.

    ``attempt`` counts the leases and is the fencing token: a node may write only while the run
    is running and still carries the attempt that the node was given. ``lost_attempts`` counts
    those that our machinery broke; ``last_seq`` is the number of the run's latest event and
    ``received`` how many events the current attempt has posted.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="runs")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="runs")
    campaign = models.ForeignKey(
        Campaign, on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    node = models.ForeignKey(
        Node, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    requested_queue = models.CharField(max_length=60, blank=True)
    priority = models.SmallIntegerField(default=0)
    seed = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    lost_attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    error_kind = models.CharField(max_length=16, choices=ErrorKind.choices, blank=True)
    error_message = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="runs",
    )
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - NULLs are distinct, '' is not
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    last_seq = models.PositiveIntegerField(default=0)
    received = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="run_newest"),
            models.Index(
                F("priority").desc(),
                F("created_at"),
                condition=Q(status=RunStatus.QUEUED),
                name="run_waiting",
            ),
            models.Index(
                fields=["lease_until"], condition=Q(status=RunStatus.RUNNING), name="run_leases"
            ),
            models.Index(fields=["status", "-created_at"], name="run_status"),
            models.Index(
                fields=["-finished_at", "-id"],
                condition=Q(finished_at__isnull=False),
                name="run_ended",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=_STATE, name="run_state"),
            models.CheckConstraint(
                condition=Q(status=RunStatus.ERRORED, error_kind__in=ErrorKind.values)
                | ~Q(status=RunStatus.ERRORED) & Q(error_kind="", error_message=""),
                name="run_error_only_when_errored",
            ),
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="run_max_attempts"),
            models.CheckConstraint(
                condition=Q(lost_attempts__lte=F("attempt"))
                & Q(lost_attempts__lte=F("max_attempts")),
                name="run_lost_attempts",
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None)
                | Q(started_at=None)
                | Q(finished_at__gte=F("started_at")),
                name="run_ends_after_its_start",
            ),
            models.UniqueConstraint(
                fields=["created_by", "idempotency_key"],
                nulls_distinct=False,
                condition=Q(idempotency_key__isnull=False),
                name="run_idempotency_key",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    def get_absolute_url(self) -> str:
        return f"/runs/{self.pk}/"

    @property
    def moment(self) -> datetime:
        """When it came to stand where it stands: ended, started or queued."""
        return self.finished_at or self.started_at or self.created_at

    @property
    def is_ended(self) -> bool:
        return self.finished_at is not None


class Event(models.Model):
    """One thing that happened to a run; append-only, numbered without gaps from 1."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["run", "seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="event_seq"),
            models.CheckConstraint(condition=Q(seq__gte=1), name="event_seq_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"
