from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import Role, Scope
from kernelhub.accounts.services import (
    TokenError,
    node_token_create,
    token_authenticate,
    token_create,
    token_revoke,
    token_rotate,
    user_role_set,
)
from kernelhub.core.models import Node

pytestmark = pytest.mark.django_db
WRITE = [Scope.RUNS_WRITE]


def test_a_fresh_token_authenticates_its_user(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    assert token_authenticate(text=issued.text).user == alice


def test_the_database_holds_no_secret(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    secret = issued.text.removeprefix(f"kh_{issued.token.prefix}_")
    row = ApiToken.objects.filter(pk=issued.token.pk).values_list().get()
    assert len(secret) == 43
    assert all(secret not in str(value) for value in row)


def test_a_wrong_secret_and_an_unknown_prefix_look_the_same(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    for text in (_other(issued.text), _unknown()):
        with pytest.raises(TokenError, match=r"^Unknown token\.$"):
            token_authenticate(text=text)


def _other(text: str) -> str:
    return text[:-1] + ("A" if text[-1] != "A" else "B")


def _unknown() -> str:
    return f"kh_{'0' * 12}_{'x' * 43}"


@pytest.mark.parametrize("text", ["", "kh_", "secret", "kh_zz_yy", "kh_\x00", "kh_é"])
def test_text_that_is_no_token_is_refused_with_the_format(text: str) -> None:
    with pytest.raises(TokenError, match="kh_<prefix>_<secret>"):
        token_authenticate(text=text)


def test_a_revoked_token_is_refused_and_says_so(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    assert token_revoke(token=issued.token)
    with pytest.raises(TokenError, match="revoked"):
        token_authenticate(text=issued.text)


def test_revoking_twice_changes_nothing(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    assert token_revoke(token=issued.token)
    assert not token_revoke(token=issued.token)


def test_an_expired_token_is_refused(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(TokenError, match="expired"):
        token_authenticate(text=issued.text)


def test_a_token_of_a_disabled_account_is_refused(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    User.objects.update(is_active=False)
    with pytest.raises(TokenError, match="disabled"):
        token_authenticate(text=issued.text)


def test_scopes_beyond_the_role_are_refused(alice: User) -> None:
    user_role_set(user=alice, role=Role.VIEWER)
    with pytest.raises(TokenError, match="runs:write") as caught:
        token_create(user=alice, label="ci", scopes=WRITE)
    assert caught.value.field == "scopes"


def test_no_person_gets_the_scope_of_nodes() -> None:
    root = User.objects.create_superuser("root")
    with pytest.raises(TokenError, match="node"):
        token_create(user=root, label="ci", scopes=[Scope.NODE])


def test_a_token_without_a_scope_is_refused(alice: User) -> None:
    with pytest.raises(TokenError, match="at least one scope"):
        token_create(user=alice, label="ci", scopes=[])


def test_an_expiry_in_the_past_is_refused(alice: User) -> None:
    with pytest.raises(TokenError, match="past"):
        token_create(user=alice, label="ci", scopes=WRITE, expires_at=timezone.now())


def test_a_node_token_carries_the_scope_of_nodes_alone(node: Node) -> None:
    issued = node_token_create(node=node)
    token = token_authenticate(text=issued.text)
    assert token.node == node
    assert token.scopes == ["node"]


def test_rotating_keeps_holder_scopes_and_lifetime_and_kills_the_old(alice: User) -> None:
    day = timedelta(days=1)
    old = token_create(user=alice, label="ci", scopes=WRITE, expires_at=timezone.now() + day)
    new = token_rotate(token=old.token)
    assert (new.token.user, new.token.scopes, new.token.label) == (alice, ["runs:write"], "ci")
    assert new.token.expires_at is not None
    assert abs(new.token.expires_at - timezone.now() - day) < timedelta(minutes=1)
    with pytest.raises(TokenError, match="revoked"):
        token_authenticate(text=old.text)


def test_a_dead_token_cannot_be_rotated_back_to_life(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    token_revoke(token=issued.token)
    with pytest.raises(TokenError, match="create a new one"):
        token_rotate(token=issued.token)
    assert ApiToken.objects.count() == 1


def test_the_last_use_is_noted_once_a_minute(alice: User) -> None:
    issued = token_create(user=alice, label="ci", scopes=WRITE)
    token_authenticate(text=issued.text)
    first = ApiToken.objects.get().last_used_at
    token_authenticate(text=issued.text)
    assert first is not None
    assert ApiToken.objects.get().last_used_at == first


@pytest.mark.parametrize("both", [True, False])
def test_the_database_wants_exactly_one_holder(alice: User, node: Node, both: bool) -> None:
    holders = {"user": alice, "node": node} if both else {}
    with pytest.raises(IntegrityError), transaction.atomic():
        ApiToken.objects.create(label="x", prefix="0" * 12, sha256="0" * 64, **holders)


def test_the_database_refuses_the_node_scope_to_a_person(alice: User) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        ApiToken.objects.create(
            label="x", prefix="0" * 12, sha256="0" * 64, user=alice, scopes=["runs:read", "node"]
        )
