from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from kernelhub import cli
from kernelhub.core.models import Run
from tests import factories as make
from tests.cli.conftest import Command, StubNode

TASK = "fuzzoracle/softmax"
REPO = Path(__file__).parents[2]


@pytest.mark.django_db(transaction=True)
def test_watch_waits_for_a_run_that_goes_on(hub: str, command: Command, node: StubNode) -> None:
    run = make.make_run()
    node.will(lambda run: make.make_finished(run, failed=("G1",)))
    assert command("watch", str(run.pk)).code == 1


@pytest.mark.django_db(transaction=True)
def test_watch_takes_the_address_of_a_page(hub: str, command: Command) -> None:
    run = make.make_finished()
    assert command("watch", f"{hub}/runs/{run.pk}/").code == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("failed", "code"), [((), 0), (("G12",), 1)])
def test_verdict_exits_by_the_verdict(
    hub: str, command: Command, failed: tuple[str, ...], code: int
) -> None:
    run = make.make_finished(failed=failed)
    result = command("verdict", str(run.pk))
    assert result.code == code
    assert "G12" in result.out


@pytest.mark.django_db(transaction=True)
def test_verdict_of_a_run_that_goes_on_exits_2_and_says_what_to_do(
    hub: str, command: Command
) -> None:
    run = make.make_run()
    result = command("verdict", str(run.pk))
    assert result.code == 2
    assert f"`.venv/bin/kernelhub watch {run.pk}`" in result.err
    there = command("verdict", str(run.pk), "--hub", hub)
    assert f"`.venv/bin/kernelhub watch {run.pk} --hub {hub}`" in there.err


@pytest.mark.django_db(transaction=True)
def test_an_unknown_run_exits_2(hub: str, command: Command) -> None:
    for name in ("watch", "verdict", "cancel"):
        assert command(name, str(uuid4())).code == 2


@pytest.mark.django_db(transaction=True)
def test_cancel_cancels(hub: str, command: Command, kernel: str) -> None:
    command("submit", kernel, "--task", TASK)
    run = Run.objects.get()
    assert command("cancel", str(run.pk)).out == f"run {run.pk} is cancelled\n"


@pytest.mark.django_db(transaction=True)
def test_tasks_lists_every_page(hub: str, command: Command) -> None:
    suite = make.make_suite("many")
    for number in range(205):
        make.make_task(suite, f"t{number:03}")
    listed = json.loads(command("tasks", "--suite", "many", "--json").out)
    assert [task["slug"] for task in listed] == [f"t{number:03}" for number in range(205)]
    assert f"{TASK}" in command("tasks").out


def test_a_hub_that_is_not_there_exits_3(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "SUBMIT_PATIENCE_S", 0.1)
    result = command("tasks", "--hub", "http://127.0.0.1:9")
    assert result.code == 3
    assert "127.0.0.1:9 does not answer" in result.err
    assert "Is `make run` up? On another port, say KERNELHUB_PORT=PORT or --hub URL." in result.err


@pytest.mark.parametrize(("piped", "same"), [(False, "True"), (True, "False")])
def test_two_streams_of_one_terminal_are_told_from_a_pipe(
    piped: bool, same: str, tmp_path: Path
) -> None:
    keeper, terminal = os.openpty()
    said = tmp_path / "said"
    code = (
        "import pathlib, sys; from kernelhub import cli; "
        "pathlib.Path(sys.argv[1]).write_text(str(cli.same_place()))"
    )
    command = [sys.executable, "-c", code, str(said)]
    out = subprocess.PIPE if piped else terminal
    subprocess.run(command, cwd=REPO, check=True, stdout=out, stderr=terminal)
    os.close(keeper)
    os.close(terminal)
    assert said.read_text() == same


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://"])
def test_a_wrong_hub_address_exits_2(command: Command, url: str) -> None:
    result = command("tasks", "--hub", url)
    assert result.code == 2
    assert "no address" in result.err


@pytest.mark.parametrize("run", ["x", "", "5"])
def test_what_is_no_id_exits_2(command: Command, run: str) -> None:
    result = command("watch", run)
    assert result.code == 2
    assert "not the id of a run" in result.err


def test_the_token_of_this_machine_goes_to_no_other_hub(tmp_path: Path) -> None:
    (tmp_path / "cli-token").write_text("kh_secret\n")
    options = argparse.Namespace(token=None)
    assert cli.find_token(options, "http://127.0.0.1:8000") == "kh_secret"
    assert cli.find_token(options, "https://hub.example.org") == ""


def test_text_from_elsewhere_gives_a_terminal_no_orders() -> None:
    assert cli.plain("a\x1b[31mb\x07\r\u202e") == "a�[31mb���"


def test_an_ascii_terminal_gets_ascii() -> None:
    script = "from kernelhub import cli; cli.show('✓ G1 · … é')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == b"+ G1 - . ?\n"


def test_the_command_loads_no_django() -> None:
    script = "import sys, kernelhub.cli; print('django' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"False False\n"


def test_every_exit_code_is_explained_in_the_help() -> None:
    words = ast.get_docstring(ast.parse(Path(cli.__file__).read_text())) or ""
    assert all(str(int(code)) in words for code in cli.Exit)
