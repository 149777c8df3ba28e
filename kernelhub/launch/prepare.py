"""Everything in the database that a launch needs, done in one process with Django loaded.

Prints one JSON document on stdout, which the supervisor reads through a pipe: secrets pass
neither through arguments nor through a log.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

import django

if TYPE_CHECKING:
    from django.contrib.auth.models import User

ADMIN: Final = "admin"
PASSWORD_NBYTES: Final = 12


def main(nodes: list[str]) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")
    with redirect_stdout(sys.stderr):
        django.setup()
        result = prepare(nodes)
    print(json.dumps(result))  # noqa: T201 - the protocol
    return 0


def prepare(nodes: Iterable[str]) -> dict[str, object]:
    """Brings tables and suites up to date; makes the accounts and tokens that are missing."""
    from django.conf import settings
    from django.core.management import call_command

    from kernelhub.launch.var import Var

    call_command("migrate", interactive=False, verbosity=0)
    call_command("load_suites")
    var = Var(Path(settings.VAR))
    user, password = admin_ensure()
    cli_token_ensure(user, var.cli_token)
    for name in nodes:
        node_token_ensure(name, var.node_token(name))
    return {"admin": user.get_username(), "password": password}


def admin_ensure() -> tuple[User, str | None]:
    """The administrator; a password comes along only when the account was made just now."""
    from django.contrib.auth.models import User

    from kernelhub.accounts.roles import Role
    from kernelhub.accounts.services import user_role_set

    known = User.objects.filter(is_superuser=True).order_by("pk").first()
    if known is not None:
        return known, None
    password = secrets.token_urlsafe(PASSWORD_NBYTES)
    user = User.objects.create_superuser(ADMIN, password=password)
    user_role_set(user=user, role=Role.ADMINISTRATOR)
    return user, password


def cli_token_ensure(user: User, path: Path) -> None:
    """A live token for the command line of this machine's owner."""
    from kernelhub.accounts.roles import USER_SCOPES
    from kernelhub.accounts.services import token_create
    from kernelhub.launch.files import write_private

    if not _token_lives(path):
        issued = token_create(user=user, label="command line (make run)", scopes=USER_SCOPES)
        write_private(path, issued.text + "\n")


def node_token_ensure(name: str, path: Path) -> None:
    """A live token for the agent of the node; the node's row is made on the way."""
    from kernelhub.accounts.services import node_token_create
    from kernelhub.core.models import Node
    from kernelhub.launch.files import private_folder, write_private

    if _token_lives(path, node=name):
        return
    node, _ = Node.objects.get_or_create(name=name)
    private_folder(path.parent)
    write_private(path, node_token_create(node=node, label="make run").text + "\n")


def _token_lives(path: Path, *, node: str | None = None) -> bool:
    """Whether the file holds a token that this database accepts, of the node when one is named."""
    from kernelhub.accounts.services import TokenError, token_authenticate

    if not path.is_file():
        return False
    try:
        token = token_authenticate(text=path.read_text(encoding="utf-8").strip())
    except TokenError:
        return False
    return node is None or (token.node is not None and token.node.name == node)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
