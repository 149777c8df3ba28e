"""Typed readers of environment variables that fail loudly and name the variable.

Nothing here falls back in silence: a variable that is set and wrong stops the process with a
message that says what was expected. A variable that is set to nothing counts as unset.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE: Final = frozenset({"1", "true", "yes", "on"})
FALSE: Final = frozenset({"0", "false", "no", "off"})
POSTGRES_SCHEMES: Final = frozenset({"postgres", "postgresql"})
BROKER_SCHEMES: Final = frozenset({"redis", "rediss", "amqp", "amqps", "memory"})
CHANNEL_SCHEMES: Final = frozenset({"redis", "rediss", "unix"})


def env_text(name: str, default: str | None = None) -> str:
    """The variable's text; without a default, an unset variable raises ImproperlyConfigured."""
    value = os.environ.get(name, "").strip() or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is not set, and there is no default for it.")
    return value


def env_flag(name: str, *, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off, in any case."""
    value = env_text(name, str(default)).lower()
    if value not in TRUE | FALSE:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return value in TRUE


def env_int(name: str, *, default: int, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    text = env_text(name, str(default))
    if not text.removeprefix("-").isdecimal() or not low <= int(text) <= high:
        raise ImproperlyConfigured(f"{name} must be a number from {low} to {high}, not {text!r}.")
    return int(text)


def env_list(name: str, *, default: Iterable[str]) -> list[str]:
    """Comma-separated names; blanks around and between them are dropped."""
    parts = env_text(name, ",".join(default)).split(",")
    return [part.strip() for part in parts if part.strip()]


def env_path(name: str, *, default: Path) -> Path:
    """An absolute path; a relative one would mean another folder in every process."""
    path = Path(env_text(name, str(default))).expanduser()
    if not path.is_absolute():
        raise ImproperlyConfigured(f"{name} must be an absolute path, not {str(path)!r}.")
    return path


def env_url(name: str, *, schemes: Iterable[str], default: str | None = None) -> str:
    """A URL with one of the schemes. Messages leave the URL out: it may hold a password."""
    url = env_text(name, default)
    scheme = urlsplit(url).scheme
    if scheme not in schemes:
        known = ", ".join(f"{one}://" for one in sorted(schemes))
        raise ImproperlyConfigured(f"{name} must start with one of {known}; it has {scheme!r}.")
    return url


def env_database(name: str) -> dict[str, Any]:
    """Django's settings of the PostgreSQL database that the URL names."""
    return database_from_url(env_url(name, schemes=POSTGRES_SCHEMES), name=name)


def database_from_url(url: str, *, name: str = "DATABASE_URL") -> dict[str, Any]:
    """``postgres://user:password@host:port/db``, or ``?host=/folder`` for a Unix socket.

    Other query parameters become libpq options (``sslmode=require``). Raises
    ImproperlyConfigured without a database name or with a port that is no number.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise ImproperlyConfigured(f"{name} names no database: postgres://user:password@host/NAME.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", None) or unquote(parts.hostname or ""),
        "PORT": _port(parts, options, name),
        "OPTIONS": options,
    }


def _port(parts: SplitResult, options: dict[str, str], name: str) -> str:
    try:
        return options.pop("port", None) or str(parts.port or "")
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} has a port that is no number up to 65535.") from error


def env_update_from_file(path: Path) -> None:
    """Sets the variables that the launcher left for other shells, where they are unset.

    ``make run`` writes the addresses of the services that it started, so that ``manage.py``
    in a second terminal meets the same database. A missing file changes nothing.
    """
    for name, value in _assignments(path).items():
        os.environ.setdefault(name, value)


def _assignments(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
