"""People who call the API, and a short way to call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from kernelhub.accounts.roles import USER_SCOPES, Role, Scope
from kernelhub.accounts.services import token_create, user_role_set
from kernelhub.core.models import Task
from tests import factories as make
from tests.api.caller import Caller

MakeUser = Callable[[str, Role], User]


@pytest.fixture(autouse=True)
def fresh_throttles() -> None:
    """Throttles count in the cache, which outlives a test."""
    cache.clear()


@pytest.fixture
def make_user(db: None) -> MakeUser:
    def build(name: str, role: Role) -> User:
        user = User.objects.create_user(name, password=f"{name}-password")
        user_role_set(user=user, role=role)
        return user

    return build


@pytest.fixture
def alice(make_user: MakeUser) -> User:
    """A submitter."""
    return make_user("alice", Role.SUBMITTER)


@pytest.fixture
def api(alice: User) -> Caller:
    """Alice with a token of every scope that she may have."""
    return caller(alice)


@pytest.fixture
def bob(make_user: MakeUser) -> Caller:
    """Another submitter."""
    return caller(make_user("bob", Role.SUBMITTER))


@pytest.fixture
def curator(make_user: MakeUser) -> Caller:
    return caller(make_user("carol", Role.CURATOR))


@pytest.fixture
def nobody() -> Caller:
    """No credentials at all."""
    return Caller(Client())


@pytest.fixture
def task(db: None) -> Task:
    return make.make_task(make.make_suite("fuzzoracle"), "softmax")


@pytest.fixture
def body(task: Task) -> dict[str, Any]:
    """The least that a submission holds."""
    return {"task": task.path, "source": make.SOURCE}


def caller(user: User, scopes: frozenset[Scope] = USER_SCOPES) -> Caller:
    return Caller(Client(), token_create(user=user, label="test", scopes=scopes).text)
