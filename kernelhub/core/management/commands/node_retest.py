from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kernelhub.core import services
from kernelhub.core.models import Node


class Command(BaseCommand):
    help = "Asks a node that is out of service to examine its device now, and to return if healthy."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        node = Node.objects.filter(name=options["name"]).first()
        if node is None:
            raise CommandError(f"There is no node {options['name']!r}.")
        if not services.node_retest(node=node):
            raise CommandError(f"{node.name} is {node.status}, not out of service.")
        self.stdout.write(f"{node.name} was out of service because: {node.health_reason}")
