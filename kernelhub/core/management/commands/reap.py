from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from kernelhub.core import services


class Command(BaseCommand):
    help = "Queues again, or ends as lost, each run whose node fell silent, as the hub worker does."

    def handle(self, *args: Any, **options: Any) -> None:
        for run in services.run_requeue_expired():
            self.stdout.write(f"{run.pk} {run.status}")
        self.stdout.write(f"{services.nodes_mark_silent()} nodes went silent")
