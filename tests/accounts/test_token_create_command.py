from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from kernelhub.accounts.services import token_authenticate
from kernelhub.core.models import Node

pytestmark = pytest.mark.django_db


def test_a_person_gets_a_token_on_standard_output(alice: User) -> None:
    out = StringIO()
    call_command("token_create", user="alice", stdout=out)
    token = token_authenticate(text=out.getvalue().strip())
    assert (token.user, token.scopes) == (alice, ["runs:read", "runs:write"])


def test_a_node_gets_a_token_in_a_file_that_only_its_owner_reads(
    node: Node, tmp_path: Path
) -> None:
    path = tmp_path / "node-token"
    path.write_text("old")
    path.chmod(0o644)
    call_command("token_create", node="bench-1", out=path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert token_authenticate(text=path.read_text().strip()).node == node


@pytest.mark.parametrize("holder", [{"user": "nobody"}, {"node": "nowhere"}])
def test_an_unknown_holder_is_a_clear_error(holder: dict[str, str]) -> None:
    with pytest.raises(CommandError, match="does not exist"):
        call_command("token_create", **holder)
