"""Environment readers: typed, loud, and silent about passwords."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from django.core.exceptions import ImproperlyConfigured

from kernelhub.settings import env

REPO: Final = Path(__file__).resolve().parents[2]
NAME: Final = "KERNELHUB_TEST_VALUE"


def test_a_missing_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is not set"):
        env.env_text(NAME)


def test_an_empty_value_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " ")
    assert env.env_text(NAME, "default") == "default"


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False)])
def test_flags(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv(NAME, text)
    assert env.env_flag(NAME, default=not value) is value


def test_a_flag_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "maybe")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be true or false, not 'maybe'"):
        env.env_flag(NAME, default=True)


@pytest.mark.parametrize("text", ["0", "65536", "80.0", "--1", "eighty", "²"])
def test_a_number_out_of_range_or_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be a number from 1 to 65535"):
        env.env_int(NAME, default=8000, low=1, high=65535)


def test_lists_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "a.example , b.example,")
    assert env.env_list(NAME, default=[]) == ["a.example", "b.example"]


def test_a_relative_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "var")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be an absolute path"):
        env.env_path(NAME, default=REPO)


def test_a_database_url_becomes_settings() -> None:
    url = "postgres://me%40work:p%2Fw@db.example:6543/hub%20one?sslmode=require"
    assert env.database_from_url(url) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "hub one",
        "USER": "me@work",
        "PASSWORD": "p/w",
        "HOST": "db.example",
        "PORT": "6543",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_database_on_a_unix_socket() -> None:
    settings = env.database_from_url("postgresql://me:pw@/hub?host=/run/pg")
    assert (settings["HOST"], settings["PORT"], settings["OPTIONS"]) == ("/run/pg", "", {})


@pytest.mark.parametrize("url", ["postgres://me:hush@host", "postgres://me:hush@host:99999/x"])
def test_a_database_url_that_says_too_little_names_the_variable(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as raised:
        env.database_from_url(url)
    assert "hush" not in str(raised.value)


def test_a_wrong_scheme_is_refused_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "mysql://me:hush@host/x")
    with pytest.raises(ImproperlyConfigured, match=r"postgres://, postgresql://; it has 'mysql'"):
        env.env_database(NAME)


def test_the_environment_wins_over_the_launchers_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "services.env"
    file.write_text(f"{NAME}=from file\n{NAME}_TWO=postgres://a:b=c@/d\n")
    monkeypatch.setenv(NAME, "from shell")
    monkeypatch.delenv(f"{NAME}_TWO", raising=False)
    env.env_update_from_file(file)
    assert os.environ[NAME] == "from shell"
    assert os.environ[f"{NAME}_TWO"] == "postgres://a:b=c@/d"
    monkeypatch.delenv(f"{NAME}_TWO")


def test_production_demands_its_secret_key() -> None:
    done = manage_check({"KERNELHUB_HOSTS": "hub.example"})
    assert "KERNELHUB_SECRET_KEY is not set" in done.stderr


def test_production_passes_djangos_deployment_checks() -> None:
    done = manage_check(
        {
            "KERNELHUB_HOSTS": "hub.example",
            "KERNELHUB_SECRET_KEY": "k9!" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
            "DATABASE_URL": "postgres://me:pw@db.example/hub",
            "BROKER_URL": "redis://broker.example",
        }
    )
    assert done.returncode == 0, done.stderr


def manage_check(given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "ERROR"],
        cwd=REPO,
        env={"PATH": os.defpath, "DJANGO_SETTINGS_MODULE": "kernelhub.settings.prod", **given},
        capture_output=True,
        text=True,
    )


def test_no_migration_is_missing_and_looking_for_one_warns_of_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "makemigrations", "--check", "--dry-run"],
        cwd=REPO,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "kernelhub.settings.offline"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
