"""Create an API token from a shell: for a person, or for a node agent."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from kernelhub.accounts.roles import USER_SCOPES, Scope
from kernelhub.accounts.services import (
    IssuedToken,
    TokenError,
    node_token_create,
    token_create,
)
from kernelhub.core.models import Node


class Command(BaseCommand):
    help = "Create an API token; its text is shown (or written to a private file) once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        holder = parser.add_mutually_exclusive_group(required=True)
        holder.add_argument("--user", help="user name of the token's holder")
        holder.add_argument("--node", help="name of the node that holds the token")
        parser.add_argument("--label", default="", help="what the token is for")
        parser.add_argument(
            "--scope",
            action="append",
            choices=sorted(USER_SCOPES),
            help="may be repeated; default runs:read and runs:write",
        )
        parser.add_argument("--out", type=Path, help="write the text here, readable by its owner")

    def handle(self, *args: Any, **options: Any) -> None:
        issued = _issue(options)
        if options["out"] is None:
            self.stdout.write(issued.text)
        else:
            private_write(options["out"], issued.text)


def _issue(options: dict[str, Any]) -> IssuedToken:
    label = options["label"] or "created in a shell"
    try:
        if options["node"]:
            return node_token_create(node=Node.objects.get(name=options["node"]), label=label)
        scopes = [Scope(name) for name in options["scope"] or ("runs:read", "runs:write")]
        user = User.objects.get(username=options["user"])
        return token_create(user=user, label=label, scopes=scopes)
    except (Node.DoesNotExist, User.DoesNotExist, TokenError) as error:
        raise CommandError(str(error)) from error


def private_write(path: Path, text: str) -> None:
    """Replace the file by one that only its owner can read, with no moment in between."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
    temporary.replace(path)
