from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from kernelhub.core.choices import TaskStatus
from kernelhub.core.models.suite import Suite


class Task(models.Model):
    """What a kernel must compute, in one revision.

    The contract, the reference and their digest never change once stored (a database trigger
    refuses it): a changed task is a new revision, so old verdicts keep meaning what they meant.
    ``contract_text`` is the contract as the digest saw it and as nodes get it; ``contract`` is
    for queries only, because jsonb turns 1e30 into an integer. ``listing`` is the hash of the
    titles, tags and workloads that the suite last gave, so that a curator's changes stay until the
    suite itself changes; ``left_at`` is when the task left its suite.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="tasks")
    slug = models.SlugField(max_length=120)
    revision = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)
    category = models.CharField(max_length=60, blank=True)
    tags = models.JSONField(default=list, blank=True)
    difficulty = models.PositiveSmallIntegerField(null=True, blank=True)
    contract = models.JSONField(editable=False)
    contract_text = models.TextField(editable=False)
    reference = models.TextField(editable=False)
    digest = models.CharField(max_length=64, editable=False)
    status = models.CharField(
        max_length=12, choices=TaskStatus.choices, default=TaskStatus.PUBLISHED
    )
    is_current = models.BooleanField(default=True)
    listing = models.CharField(max_length=64, blank=True, editable=False)
    left_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["suite__order", "slug", "-revision"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["suite", "slug", "revision"], name="task_revision"),
            models.UniqueConstraint(
                fields=["suite", "slug"], condition=Q(is_current=True), name="task_one_current"
            ),
            models.CheckConstraint(condition=Q(revision__gte=1), name="task_revision_from_1"),
            models.CheckConstraint(condition=Q(digest__regex="^[0-9a-f]{64}$"), name="task_digest"),
            models.CheckConstraint(condition=Q(status__in=TaskStatus.values), name="task_status"),
        ]

    def __str__(self) -> str:
        return f"{self.path} r{self.revision}"

    def get_absolute_url(self) -> str:
        return f"/tasks/{self.path}/"

    @property
    def path(self) -> str:
        """Its name for people and tools, such as ``fuzzoracle/softmax``."""
        return f"{self.suite.slug}/{self.slug}"


class Workload(models.Model):
    """One concrete assignment of a task's dims and dtypes, with its weight in scores."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="workloads")
    name = models.CharField(max_length=120)
    dims = models.JSONField(default=dict)
    dtypes = models.JSONField(default=dict)
    weight = models.FloatField(default=1.0)
    phase = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task", "name"], name="workload_name"),
            models.CheckConstraint(condition=Q(weight__gte=0), name="workload_weight"),
        ]

    def __str__(self) -> str:
        return self.name
