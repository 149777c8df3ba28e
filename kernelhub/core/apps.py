from __future__ import annotations

from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "kernelhub.core"
    label = "core"
    verbose_name = "Kernels and verdicts"

    def ready(self) -> None:
        from kernelhub.core import checks  # noqa: F401 - registers the system checks
