from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import Role
from kernelhub.accounts.services import token_authenticate, user_role_set
from kernelhub.core.models import Campaign, Kernel, Node, Run, Suite, Task, Verdict
from tests import factories as make

pytestmark = pytest.mark.django_db
MODELS = [Suite, Task, Kernel, Run, Verdict, Node, Campaign, ApiToken, User]


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def curator(alice: User) -> Client:
    user_role_set(user=alice, role=Role.CURATOR)
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def rows(alice: User) -> None:
    make.make_finished(make.make_run(campaign=make.make_campaign(), created_by=alice))


def address(model: Any, page: str = "") -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/{page}"


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_rows_can_be_opened(root: Client, rows: None, alice: User, model: Any) -> None:
    ApiToken.objects.create(label="x", prefix="0" * 12, sha256="0" * 64, user=alice)
    assert root.get(address(model)).status_code == 200
    row = model.objects.first()
    assert root.get(address(model, f"{row.pk}/change/")).status_code == 200


@pytest.mark.parametrize("model", [Run, Verdict])
def test_nobody_writes_runs_or_verdicts_by_hand(root: Client, rows: None, model: Any) -> None:
    before = list(model.objects.values())
    row = model.objects.get()
    for page in ("add/", f"{row.pk}/change/", f"{row.pk}/delete/"):
        assert root.post(address(model, page), {"post": "yes"}).status_code == 403, page
    assert list(model.objects.values()) == before


def test_a_curator_retires_a_task_but_cannot_touch_its_contract(
    curator: Client, rows: None
) -> None:
    task = Task.objects.get()
    form = {"title": "New", "status": "retired", "tags": "[]", "contract": '{"x": 1}'}
    management = {"workloads-TOTAL_FORMS": "0", "workloads-INITIAL_FORMS": "0"}
    response = curator.post(address(Task, f"{task.pk}/change/"), form | management)
    assert response.status_code == 302
    changed = Task.objects.get()
    assert (changed.status, changed.title) == ("retired", "New")
    assert changed.contract == task.contract


def test_a_curator_sees_neither_people_nor_tokens(curator: Client) -> None:
    assert curator.get(address(User)).status_code == 403
    assert curator.get(address(ApiToken)).status_code == 403


def test_a_node_token_is_made_and_shown_once(root: Client, node: Node) -> None:
    form = {"label": "agent", "node": str(node.pk)}
    page = root.post(address(ApiToken, "add/"), form, follow=True).content.decode()
    text = re.findall(r"kh_[0-9a-f]{12}_[\w-]{43}", page)[0]
    assert token_authenticate(text=text).node == node
    assert text not in root.get(address(ApiToken)).content.decode()


def test_a_token_for_a_person_stays_within_their_role(root: Client, alice: User) -> None:
    user_role_set(user=alice, role=Role.VIEWER)
    form = {"label": "x", "user": str(alice.pk), "scopes": ["runs:write"]}
    assert b"runs:write." in root.post(address(ApiToken, "add/"), form).content
    assert ApiToken.objects.count() == 0


@pytest.mark.parametrize("both", [True, False])
def test_a_token_has_one_holder(root: Client, alice: User, node: Node, both: bool) -> None:
    holders = {"user": str(alice.pk), "node": str(node.pk)} if both else {}
    response = root.post(address(ApiToken, "add/"), {"label": "x", **holders})
    assert b"not both" in response.content
    assert ApiToken.objects.count() == 0


def test_tokens_are_revoked_in_bulk(root: Client, alice: User) -> None:
    token = ApiToken.objects.create(label="x", prefix="0" * 12, sha256="0" * 64, user=alice)
    form = {"action": "revoke", "_selected_action": [str(token.pk)]}
    root.post(address(ApiToken), form)
    assert ApiToken.objects.get().revoked_at is not None


def test_every_core_model_of_the_brief_is_registered() -> None:
    assert all(admin.site.is_registered(model) for model in MODELS)
