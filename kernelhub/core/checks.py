"""Misconfiguration shown by ``manage.py check``, each with an id and what to do."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def database_is_postgresql(**_: Any) -> list[CheckMessage]:
    """Leases rely on SKIP LOCKED and invariants on triggers that only PostgreSQL has."""
    engine = str(settings.DATABASES.get("default", {}).get("ENGINE", ""))
    if engine.endswith("postgresql"):
        return []
    hint = "Set DATABASE_URL=postgres://user:password@host:port/name."
    return [Error(f"kernelhub needs PostgreSQL, not {engine!r}.", hint=hint, id="core.E001")]


@register()
def channel_layer_exists(**_: Any) -> list[CheckMessage]:
    """Without one, live pages would silently never move."""
    if getattr(settings, "CHANNEL_LAYERS", {}).get("default"):
        return []
    return [Error("CHANNEL_LAYERS has no default.", hint="Set CHANNEL_URL.", id="core.E002")]
