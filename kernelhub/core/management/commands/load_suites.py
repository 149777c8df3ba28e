from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kernelhub.core import services, suites


class Command(BaseCommand):
    help = "Stores the tasks of every registered suite; safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slugs", nargs="*", help="only these suites")

    def handle(self, *args: Any, **options: Any) -> None:
        for definition in _chosen(options["slugs"]):
            done = services.suite_sync(definition)
            self.stdout.write(
                f"{definition.slug}: {len(done.created)} new, {len(done.revised)} revised, "
                f"{len(done.retired)} retired, {done.unchanged} unchanged"
            )


def _chosen(slugs: list[str]) -> list[suites.SuiteDefinition]:
    try:
        return [suites.get(slug) for slug in slugs] or list(suites.registered())
    except LookupError as error:
        raise CommandError(str(error)) from error
