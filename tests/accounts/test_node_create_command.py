from __future__ import annotations

import pytest
from django.core.management import call_command

from kernelhub.accounts.services import TokenError, token_authenticate
from kernelhub.core.models import Node

pytestmark = pytest.mark.django_db


def create(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The only line on standard output: the token."""
    call_command("node_create", *arguments)
    return capsys.readouterr().out.strip()


def test_a_node_is_made_with_a_token_that_is_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    token = token_authenticate(text=create(capsys, "alpha"))
    assert (token.node, token.user) == (Node.objects.get(name="alpha"), None)


def test_a_second_token_of_a_node_leaves_the_first_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = create(capsys, "alpha"), create(capsys, "alpha")
    assert token_authenticate(text=first).node == token_authenticate(text=second).node


def test_rotation_revokes_the_tokens_of_that_node_alone(capsys: pytest.CaptureFixture[str]) -> None:
    first, other = create(capsys, "alpha"), create(capsys, "beta")
    fresh = create(capsys, "alpha", "--rotate")
    with pytest.raises(TokenError, match="revoked"):
        token_authenticate(text=first)
    assert token_authenticate(text=other).node != token_authenticate(text=fresh).node
