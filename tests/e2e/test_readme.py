"""The README's lines for the API, run by a shell as they stand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User

from kernelhub.core.models import Run
from tests.e2e.conftest import REPO, Hub, environment
from tests.web import samples

SECTION: Final = re.compile(r"^## The API\n.*?^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def api_lines() -> str:
    found = SECTION.search((REPO / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def hub_prepare() -> None:
    """What `make run` has done before anybody pastes a line: an administrator and the task."""
    admin = User.objects.create_user("admin", password="secret")
    admin.groups.add(Group.objects.get(name="curator"))
    samples.suite_load()


async def test_the_lines_submit_a_kernel_and_read_its_verdict(
    hub: Hub, redis_url: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("NO CURL: the README's lines for the API are not tried")
    await hub.do(hub_prepare)
    document, kernel = tmp_path / "verdict.json", tmp_path / "kernel.py"
    kernel.write_text(samples.SOFTMAX)
    lines = api_lines().replace("verdict.json", str(document)).replace("kernel.py", str(kernel))
    place = {"KERNELHUB_PORT": str(urlsplit(hub.url).port)}
    shell = await asyncio.create_subprocess_exec(
        "bash",
        *("-eu", "-o", "pipefail", "-c", lines),
        cwd=REPO,
        env={**os.environ, **environment(redis_url), **place},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    judged = asyncio.create_task(_judge_the_next(hub))
    output, errors = await asyncio.wait_for(shell.communicate(), 90)
    assert shell.returncode == 0, errors.decode()
    run = await judged
    answer = json.loads(output)
    assert (answer["id"], answer["outcome"]) == (str(run.pk), "rejected")
    assert json.loads(document.read_text())["seed"] == run.seed


async def _judge_the_next(hub: Hub) -> Run:
    """Plays the node: waits for the run and finishes it with two failed gates."""
    while (run := await hub.do(Run.objects.filter(status="queued").first)) is None:
        await asyncio.sleep(0.2)
    return await hub.do(_judge, run)


def _judge(run: Run) -> Run:
    gates = samples.gate_results(samples.FAULTS["no_max"])
    return samples.run_judge(run, samples.node_online(), gates, loose=True)
