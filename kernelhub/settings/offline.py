"""The settings of the tests without any database: for commands that read models and migrations."""

from __future__ import annotations

from kernelhub.settings.test import *  # noqa: F403

DATABASES = {"default": {"ENGINE": "django.db.backends.dummy"}}
SILENCED_SYSTEM_CHECKS = ["core.E001"]  # it asks for PostgreSQL, and here nothing asks for a row
