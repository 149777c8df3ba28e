"""Each thing that can be wrong before a start is one line that says what to do."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from kernelhub.launch.checks import check_broker, check_database, check_disk, check_port
from kernelhub.launch.errors import LaunchError
from kernelhub.launch.redis_server import free_port
from kernelhub.launch.var import var_held


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


def problem_of(raised: pytest.ExceptionInfo[LaunchError]) -> str:
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_a_busy_port_names_another_one(busy_port: int) -> None:
    with pytest.raises(LaunchError) as raised:
        check_port(busy_port)
    assert f"Port {busy_port} is in use" in problem_of(raised)
    assert f"KERNELHUB_PORT={busy_port + 1} make run" in problem_of(raised)


def test_a_free_port_is_fine() -> None:
    check_port(free_port())


def test_a_full_disk_says_how_much_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = SimpleNamespace(free=5 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: full)
    with pytest.raises(LaunchError) as raised:
        check_disk(tmp_path)
    assert "has 5 MB left, and 300 MB are needed" in problem_of(raised)


def test_a_database_that_does_not_exist_names_the_variable() -> None:
    with pytest.raises(LaunchError) as raised:
        check_database(f"postgres://somebody:hush-hush@127.0.0.1:{free_port()}/nothing")
    assert "correct DATABASE_URL, or unset it" in problem_of(raised)
    assert "hush-hush" not in problem_of(raised)


def test_a_wrong_database_password_is_said(postgres_url: str) -> None:
    wrong = postgres_url.replace(urlsplit(postgres_url).password or "", "hush-hush")
    with pytest.raises(LaunchError) as raised:
        check_database(wrong)
    assert "password authentication failed" in problem_of(raised)
    assert "hush-hush" not in problem_of(raised)


def test_a_working_database_is_fine(postgres_url: str) -> None:
    check_database(postgres_url)


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_dead_broker_names_the_variable(scheme: str) -> None:
    with pytest.raises(LaunchError) as raised:
        check_broker(f"{scheme}://:hush-hush@127.0.0.1:{free_port()}/0")
    assert "correct BROKER_URL, or unset it" in problem_of(raised).replace("start it, ", "")
    assert "hush-hush" not in problem_of(raised)


def test_a_broker_that_answers_is_fine(redis_url: str) -> None:
    check_broker(redis_url)


def test_a_second_launch_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with (
        var_held(tmp_path / "var"),
        pytest.raises(LaunchError) as raised,
        var_held(tmp_path / "var"),
    ):
        pass
    assert "kernelhub already runs on" in problem_of(raised)


def test_the_folder_is_free_again_after_a_launch(tmp_path: Path) -> None:
    with var_held(tmp_path / "var"):
        pass
    with var_held(tmp_path / "var") as var:
        assert var.root == tmp_path / "var"


def test_a_folder_that_cannot_be_written_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # root may write into any folder, but nobody into a file
    with pytest.raises(LaunchError) as raised, var_held(tmp_path / "file" / "var"):
        pass
    assert "name another folder with KERNELHUB_VAR" in problem_of(raised)


def test_var_lets_others_pass_and_keeps_its_content_private(tmp_path: Path) -> None:
    with var_held(tmp_path / "var") as var:
        assert var.root.stat().st_mode & 0o066 == 0
        assert var.logs.stat().st_mode & 0o077 == 0
        assert os.access(var.logs, os.W_OK)
