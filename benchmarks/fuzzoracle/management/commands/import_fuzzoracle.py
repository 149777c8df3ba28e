"""`manage.py import_fuzzoracle ENTRIES [--check]`: the upstream figures into our corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmarks.fuzzoracle.importer import import_entries
from benchmarks.fuzzoracle.suite import CorpusError


class Command(BaseCommand):
    help = "Bring the P1 replica's dims, dtypes and declared figures in line with upstream entries."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "entries", type=Path, help="upstream's folder of entries, or one JSON document of them"
        )
        parser.add_argument("--check", action="store_true", help="change nothing, fail if it would")

    def handle(self, *args: Any, entries: Path, check: bool, **options: Any) -> None:
        try:
            changes = import_entries(entries, write=not check)
        except CorpusError as error:
            raise CommandError(str(error)) from error
        for change in changes:
            self.stdout.write(change)
        if check and changes:
            raise CommandError(f"{len(changes)} figures differ from upstream's")
        self.stdout.write(f"{len(changes)} changes")
