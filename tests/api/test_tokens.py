from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import Role, Scope
from kernelhub.accounts.services import token_create, user_role_set
from tests.api.caller import Caller, faults, problem
from tests.api.conftest import caller

pytestmark = pytest.mark.django_db


def made(api: Caller, **fields: Any) -> Any:
    return api.post("tokens", {"label": "ci", **fields}).json()


def test_a_new_token_works_and_is_shown_once(api: Caller) -> None:
    token = made(api, scopes=["runs:read"])
    assert Caller(Client(), token["token"]).get("me").json()["user"] == "alice"
    assert token["token"].startswith(token["prefix"])
    shown = [api.get("tokens"), api.get(f"tokens/{token['id']}")]
    assert all(token["token"].encode() not in response.content for response in shown)


def test_the_response_with_the_secret_is_not_to_be_stored(api: Caller) -> None:
    response = api.post("tokens", {"label": "ci"})
    assert response.headers["Cache-Control"] == "no-store"


def test_a_person_sees_only_their_own_tokens(api: Caller, bob: Caller) -> None:
    token = made(api)
    assert token["id"] not in [one["id"] for one in bob.get("tokens").json()["results"]]
    problem(bob.get(f"tokens/{token['id']}"), 404, "not-found")
    problem(bob.send("DELETE", f"tokens/{token['id']}"), 404, "not-found")
    problem(bob.post(f"tokens/{token['id']}/rotate"), 404, "not-found")


def test_a_revoked_token_opens_nothing(api: Caller) -> None:
    token = made(api)
    assert api.send("DELETE", f"tokens/{token['id']}").status_code == 204
    document = problem(Caller(Client(), token["token"]).get("runs"), 401, "unauthenticated")
    assert "revoked" in document["detail"]


def test_rotating_gives_a_new_secret_and_kills_the_old(api: Caller) -> None:
    old = made(api, scopes=["runs:read"])
    new = api.post(f"tokens/{old['id']}/rotate").json()
    assert (new["label"], new["scopes"]) == (old["label"], old["scopes"])
    assert Caller(Client(), new["token"]).get("me").status_code == 200
    assert Caller(Client(), old["token"]).get("me").status_code == 401


def test_rotating_a_revoked_token_is_a_conflict(api: Caller) -> None:
    token = made(api)
    api.send("DELETE", f"tokens/{token['id']}")
    problem(api.post(f"tokens/{token['id']}/rotate"), 409, "conflict")


def test_a_token_cannot_hand_out_what_it_does_not_have(alice: User) -> None:
    weak = caller(alice, frozenset({Scope.TOKENS_WRITE}))
    document = problem(
        weak.post("tokens", {"label": "x", "scopes": ["runs:write"]}), 400, "invalid-request"
    )
    assert "runs:write" in faults(document)["#/scopes"]


def test_a_token_cannot_rotate_itself_into_a_stronger_one(alice: User) -> None:
    strong = token_create(user=alice, label="strong", scopes=[Scope.RUNS_WRITE]).token
    weak = caller(alice, frozenset({Scope.TOKENS_WRITE}))
    problem(weak.post(f"tokens/{strong.pk}/rotate"), 400, "invalid-request")
    assert ApiToken.objects.get(pk=strong.pk).revoked_at is None


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"label": ""}, "#/label"),
        ({"label": "l" * 81}, "#/label"),
        ({"scopes": ["root"]}, "#/scopes/0"),
        ({"scopes": ["node"]}, "#/scopes/0"),
        ({"scopes": []}, "#/scopes"),
        ({"scopes": "runs:read"}, "#/scopes"),
        ({"expires_at": "yesterday"}, "#/expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "#/expires_at"),
    ],
)
def test_a_wrong_field_is_pointed_at(api: Caller, fields: Any, pointer: str) -> None:
    document = problem(api.post("tokens", {"label": "ci"} | fields), 400, "invalid-request")
    assert pointer in faults(document)


def test_a_date_of_expiry_is_kept(api: Caller) -> None:
    soon = timezone.now() + timedelta(days=30)
    token = made(api, expires_at=soon.isoformat())
    assert ApiToken.objects.get(pk=token["id"]).expires_at == soon


def test_who_am_i(api: Caller, nobody: Caller) -> None:
    assert api.get("me").json()["role"] == "submitter"
    assert nobody.get("me").json() == {"user": None, "role": None, "scopes": ["runs:read"]}


def test_a_role_that_shrinks_shrinks_its_tokens(api: Caller, alice: User) -> None:
    user_role_set(user=alice, role=Role.VIEWER)
    problem(api.submit({}), 403, "forbidden")
