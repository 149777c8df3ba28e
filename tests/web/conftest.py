"""Fixtures of the page tests."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from kernelhub.core.models import Campaign, Run
from tests.web import samples


@pytest.fixture
def world(db: None) -> Campaign:
    """Twenty sample runs: finished, queued, cancelled and errored ones."""
    return samples.world_seed()


@pytest.fixture
def illusion(world: Campaign) -> Run:
    """A run that the loose test accepts and two gates reject."""
    return Run.objects.get(kernel__label="gelu_no_max")


@pytest.fixture
def curator(db: None) -> User:
    return person("curator", "curator")


@pytest.fixture
def submitter(db: None) -> User:
    return person("sue", "submitter")


def person(name: str, role: str) -> User:
    user = User.objects.create_user(name, password="secret")
    user.groups.add(Group.objects.get(name=role))
    return user
