"""What import-linter cannot see, and what must hold for its contracts to mean something."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

REPO: Final = Path(__file__).resolve().parents[1]
HEAVY: Final = ("torch", "triton", "numpy")
# Makes the named modules impossible to import, as on a host without the group `runner`.
BLOCK: Final = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r}))\n"


def project() -> dict[str, Any]:
    return tomllib.loads((REPO / "pyproject.toml").read_text())


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    env = {"DJANGO_SETTINGS_MODULE": "kernelhub.settings.test", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)


def test_every_verifier_module_that_does_not_cross_into_django_is_protected() -> None:
    contracts = {one["id"]: one for one in project()["tool"]["importlinter"]["contracts"]}
    found = {
        f"verifier.{path.stem}"
        for path in (REPO / "verifier").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    free = {"verifier.__init__", "verifier.__main__"}
    free |= {"verifier.records", "verifier.wording", "verifier.statistics", "verifier.studies"}
    assert set(contracts["records-only"]["protected_modules"]) == found - free


def test_what_crosses_into_django_loads_without_torch() -> None:
    done = run_python(f"{BLOCK}import verifier.records, verifier.wording, verifier.studies")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", ["kernelhub.asgi", "kernelhub.celery", "kernelhub.launch.__main__"]
)
def test_a_web_host_without_the_runner_group_can_import(module: str) -> None:
    done = run_python(f"{BLOCK}import {module}")
    assert done.returncode == 0, done.stderr


def test_no_django_process_loads_torch() -> None:
    code = f"import kernelhub.asgi, sys; print([m for m in {HEAVY[:2]!r} if m in sys.modules])"
    done = run_python(code)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


TORCHS_OWN: Final = frozenset({"nvidia-cuda-nvrtc"})
"""Packages that a torch built for CUDA wants in a version of its own."""


def test_every_dependency_is_pinned() -> None:
    lines = (REPO / "constraints.txt").read_text().splitlines()
    pinned = {canonical(line.split("==")[0]) for line in lines if "==" in line}
    assert {canonical(name) for name in wanted_names()} - TORCHS_OWN <= pinned


def wanted_names() -> list[str]:
    tables = project()
    groups = tables["dependency-groups"].values()
    lines = [*tables["project"]["dependencies"], *(line for group in groups for line in group)]
    return [requirement_name(line) for line in lines]


def requirement_name(line: str) -> str:
    from packaging.requirements import Requirement

    return Requirement(line).name


def canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def test_where_our_programs_lie_is_written_once() -> None:
    """Commands that people paste begin with the same folder, whoever prints them."""
    sources = [*REPO.glob("kernelhub/**/*.py"), *REPO.glob("gpu_runner/**/*.py")]
    sources += REPO.glob("templates/**/*.html")
    found = [path.name for path in sources if ".venv/bin" in path.read_text()]
    assert found == ["programs.py"]
