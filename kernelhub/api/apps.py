"""The REST API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "kernelhub.api"
    label = "api"
    verbose_name = "REST API"

    def ready(self) -> None:
        # Registers how the schema describes our authentication.
        from kernelhub.api import schema  # noqa: F401
