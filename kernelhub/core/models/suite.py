from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models


class Suite(models.Model):
    """A benchmark: a set of tasks with its own scoring."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    homepage = models.URLField(blank=True)
    order = models.SmallIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["order", "slug"]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return f"/suites/{self.slug}/"
