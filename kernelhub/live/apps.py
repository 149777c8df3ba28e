"""The live pages' Django app."""

from __future__ import annotations

from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "kernelhub.live"
    label = "live"
