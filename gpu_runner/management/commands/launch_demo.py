from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gpu_runner.devices import queue_of
from gpu_runner.services import Demo, demo_launch
from kernelhub.core.services import ServiceError


class Command(BaseCommand):
    help = "Launches the fuzz-oracle corpus as a campaign, where it has no current verdict yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--suite", default="fuzzoracle")
        parser.add_argument("--group", default="", help="only this group of the corpus")
        parser.add_argument("--queue", help="a capability; left out, that of this machine")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        queue = queue_of("auto") if options["queue"] is None else options["queue"]
        try:
            demo = demo_launch(suite_slug=options["suite"], queue=queue, group=options["group"])
        except (LookupError, ServiceError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(_document(demo)) if options["json"] else _sentence(demo))


def _document(demo: Demo) -> dict[str, object]:
    return {
        "campaign": str(demo.campaign.pk),
        "launched": len(demo.launched),
        "judged": demo.judged,
    }


def _sentence(demo: Demo) -> str:
    return f"{len(demo.launched)} runs launched, {demo.judged} kernels already had a verdict"
