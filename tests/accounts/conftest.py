"""People and machines for the account tests."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from kernelhub.accounts.roles import Role
from kernelhub.accounts.services import user_role_set
from kernelhub.core.models import Node


@pytest.fixture
def alice(db: None) -> User:
    """A submitter."""
    user = User.objects.create_user("alice", password="alice-password")
    user_role_set(user=user, role=Role.SUBMITTER)
    return user


@pytest.fixture
def node(db: None) -> Node:
    return Node.objects.create(name="bench-1", mode="cpu-interpret", queue="cpu-interpret")
