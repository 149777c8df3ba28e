from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.services import node_token_create, token_revoke
from kernelhub.core.models import Node


class Command(BaseCommand):
    help = "Admits a node and prints its token, once. With --rotate its earlier tokens end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--rotate", action="store_true", help="revoke the node's other tokens")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        node, _ = Node.objects.get_or_create(name=options["name"])
        if options["rotate"]:
            for token in ApiToken.objects.filter(node=node, revoked_at=None):
                token_revoke(token=token)
        self.stderr.write("Set this as KERNELHUB_NODE_TOKEN; it is not shown again:")
        self.stdout.write(node_token_create(node=node).text)
