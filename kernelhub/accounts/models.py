"""API tokens: who holds one, what it may do, and no way to read its secret back."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from kernelhub.accounts.roles import Scope


class ApiToken(models.Model):
    """A bearer token of one user or one node.

    Written as ``kh_<prefix>_<secret>``. The prefix finds the row and may be shown; of the secret
    only the sha256 is kept, which is enough for a secret of 256 random bits.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    label = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, unique=True)
    sha256 = models.CharField(max_length=64)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="api_tokens",
    )
    node = models.ForeignKey(
        "core.Node", null=True, blank=True, on_delete=models.CASCADE, related_name="api_tokens"
    )
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["-created_at", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                name="token_has_one_holder",
                condition=Q(user__isnull=False, node__isnull=True)
                | Q(user__isnull=True, node__isnull=False),
            ),
            # The scope that reaches leased runs is for machines, and machines get nothing else.
            models.CheckConstraint(
                name="token_node_scope_is_for_nodes",
                condition=Q(node__isnull=False, scopes=[Scope.NODE.value])
                | (Q(node__isnull=True) & ~Q(scopes__contains=[Scope.NODE.value])),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.label} (kh_{self.prefix}…)"

    @property
    def holder(self) -> str:
        """The name of the user or node, for lists."""
        if self.node is not None:
            return f"node {self.node.name}"
        return self.user.get_username() if self.user is not None else ""

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now
