from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from kernelhub.core.choices import LANGUAGE_CHOICES, AuthorKind, Expectation
from kernelhub.core.models.task import Task


class Kernel(models.Model):
    """One candidate source for one task. Its content hash is its identity within the task.

    The source never changes once stored (a database trigger refuses it).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="kernels")
    source = models.TextField(editable=False)
    sha256 = models.CharField(max_length=64, editable=False)
    entry = models.CharField(max_length=120, default="run", editable=False)
    language = models.CharField(max_length=12, choices=LANGUAGE_CHOICES)
    author_name = models.CharField(max_length=120, blank=True)
    author_kind = models.CharField(
        max_length=10, choices=AuthorKind.choices, default=AuthorKind.PERSON
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="kernels",
    )
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="children"
    )
    label = models.CharField(max_length=120, blank=True)
    group = models.CharField(max_length=60, blank=True)
    expectation = models.CharField(max_length=10, choices=Expectation.choices, blank=True)
    claimed = models.JSONField(null=True, blank=True)
    notes = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["sha256"]),
            models.Index(fields=["-created_at", "id"]),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task", "sha256", "entry"], name="kernel_content"),
            models.CheckConstraint(
                condition=Q(sha256__regex="^[0-9a-f]{64}$"), name="kernel_sha256"
            ),
            models.CheckConstraint(
                condition=Q(author_kind__in=AuthorKind.values), name="kernel_author_kind"
            ),
            models.CheckConstraint(
                condition=Q(expectation__in=["", *Expectation.values]), name="kernel_expectation"
            ),
        ]

    def __str__(self) -> str:
        return self.label or self.sha256[:12]

    def get_absolute_url(self) -> str:
        return f"/kernels/{self.pk}/"
