"""Every command that a page shows works when pasted in a shell at the repository's root."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from django.test import Client, RequestFactory

from kernelhub.core.models import Kernel, Run
from kernelhub.web.commands import hub_command
from tests.web import samples

REPO = Path(__file__).parents[2]
PROGRAMS = re.compile(r"^(?:\S*/)?(?:kernelhub|python3?|manage\.py)\s")
SHOWN = re.compile(r"<(pre|code)\b[^>]*>(.*?)</\1>", re.DOTALL)


def commands_of(html: str) -> list[str]:
    """Lines of commands: in blocks, in running text, never in a kernel's source."""
    texts = [re.sub(r"<[^>]+>", "", unescape(found[1])) for found in SHOWN.findall(html)]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [line for line in lines if PROGRAMS.match(line)]


def assert_pasteable(command: str) -> None:
    program, *words = shlex.split(command)
    assert program in (".venv/bin/kernelhub", ".venv/bin/python"), command
    named = [REPO / word for word in words if word.startswith(("benchmarks/", "manage.py"))]
    assert all(path.exists() for path in named), command


@pytest.mark.django_db
def test_commands_of_an_empty_hub(client: Client) -> None:
    for path in ("/", "/runs/", "/suites/", "/verifier/"):
        found = commands_of(client.get(path).content.decode())
        assert found, path
        for command in found:
            assert_pasteable(command)


def test_commands_of_a_hub_in_use(client: Client, illusion: Run) -> None:
    task = samples.suite_load()[-1]
    label = "'; touch owned; '"
    unjudged: Kernel = samples.kernel_of(task, label)
    for path in (f"/runs/{illusion.pk}/", f"/kernels/{unjudged.pk}/"):
        found = commands_of(client.get(path).content.decode())
        assert found, path
        for command in found:
            assert_pasteable(command)
            assert "owned" not in command


def test_a_command_names_the_hub_that_shows_it_unless_it_is_the_usual_one() -> None:
    usual = RequestFactory().get("/", HTTP_HOST="127.0.0.1:8000")
    assert hub_command(usual, "tasks") == ".venv/bin/kernelhub tasks"
    other = RequestFactory().get("/", HTTP_HOST="127.0.0.1:8477")
    assert hub_command(other, "tasks") == ".venv/bin/kernelhub tasks --hub http://127.0.0.1:8477"
