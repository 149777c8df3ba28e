from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from gpu_runner.services import node_admit


class Command(BaseCommand):
    help = "Admits a node and prints its token, once. With --rotate its earlier tokens end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--rotate", action="store_true", help="revoke the node's other tokens")

    def handle(self, *args: Any, **options: Any) -> None:
        text = node_admit(name=options["name"], rotate=options["rotate"])
        self.stderr.write("Set this as KERNELHUB_NODE_TOKEN; it is not shown again:")
        self.stdout.write(text)
