from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from kernelhub.core.choices import NodeStatus, choices_of
from verifier.records import DeviceMode


class Node(models.Model):
    """A machine with a device that judges runs. What it says of itself comes from its verifier."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120, unique=True)
    mode = models.CharField(max_length=20, choices=choices_of(DeviceMode), blank=True)
    queue = models.SlugField(max_length=60, blank=True)
    device_name = models.CharField(max_length=200, blank=True)
    device_uuid = models.CharField(max_length=80, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=NodeStatus.choices, default=NodeStatus.OFFLINE)
    health = models.JSONField(default=dict, blank=True)
    """The last report of its verifier on its device (verifier.records.HealthReport)."""
    health_reason = models.TextField(blank=True)
    """Why it is out of service; '' while it is not."""
    health_changed_at = models.DateTimeField(null=True, blank=True)
    """When it last left or re-entered service."""
    outages = models.PositiveSmallIntegerField(default=0)
    """How often it left service within the hour before its last outage, that one included."""
    retest_asked = models.BooleanField(default=False)
    """An operator wants the device examined at once, and takes it back if it is found healthy."""
    last_seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=NodeStatus.values), name="node_status"),
            models.CheckConstraint(
                condition=~Q(status=NodeStatus.SICK) | ~Q(health_reason=""),
                name="node_sick_says_why",
            ),
        ]

    def __str__(self) -> str:
        return self.name
