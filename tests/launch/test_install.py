"""``make setup``: only when something changed, and with one line when it cannot."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

REPO: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = REPO / "kernelhub" / "launch" / "install.py"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The installer with a repository of its own, whose pip only notes what it is asked."""
    spec = importlib.util.spec_from_file_location("installer", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / ".venv"
    for name, value in {
        "REPO": tmp_path,
        "VENV": venv,
        "STAMP": venv / "kernelhub-setup.json",
        "CONSTRAINTS": tmp_path / "constraints.txt",
    }.items():
        monkeypatch.setattr(module, name, value)
    (tmp_path / "constraints.txt").write_text("Django==5.2.19\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["Django"]\n')
    return module


@pytest.fixture
def asked(install: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The groups of each installation."""
    calls: list[list[str]] = []

    def create_venv(folder: Path) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()

    def pretend(_folder: Path, groups: list[str], **_: Any) -> None:
        calls.append(groups)

    monkeypatch.setattr(install, "create_venv", create_venv)
    monkeypatch.setattr(install, "install", pretend)
    return calls


def test_a_second_setup_installs_nothing(install: ModuleType, asked: list[list[str]]) -> None:
    assert install.main(["--with", "runner services"]) == 0
    assert install.main(["--with", "runner services"]) == 0
    assert asked == [["runner", "services"]]


def test_a_subset_of_what_is_there_installs_nothing(
    install: ModuleType, asked: list[list[str]]
) -> None:
    install.main([])
    install.main(["--with", "services"])
    assert len(asked) == 1


def test_another_group_is_added_and_the_earlier_ones_stay(
    install: ModuleType, asked: list[list[str]]
) -> None:
    install.main(["--with", "services"])
    install.main(["--with", "dev"])
    assert asked[1] == ["services", "dev"]


def test_a_changed_pin_installs_again(install: ModuleType, asked: list[list[str]]) -> None:
    install.main([])
    install.CONSTRAINTS.write_text("Django==5.2.20\n")
    install.main([])
    assert len(asked) == 2


def test_a_changed_lint_rule_installs_nothing(install: ModuleType, asked: list[list[str]]) -> None:
    install.main([])
    with (install.REPO / "pyproject.toml").open("a") as project:
        project.write("[tool.ruff]\nline-length = 80\n")
    install.main([])
    assert len(asked) == 1


def test_an_installation_that_broke_off_is_tried_again(
    install: ModuleType, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    install.main([])
    working = install.install
    (install.REPO / "constraints.txt").write_text("Django==5.2.20\n")

    def broken(*_: Any, **__: Any) -> None:
        raise install.Stop("no network")

    monkeypatch.setattr(install, "install", broken)
    assert install.main([]) == 1
    monkeypatch.setattr(install, "install", working)
    assert install.main([]) == 0
    assert len(asked) == 2
    assert json.loads(install.STAMP.read_text())["groups"] == ["runner", "services", "dev"]


def test_an_unknown_group_is_named(install: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        install.main(["--with", "gpu"])
    assert "unknown group gpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stderr", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("Temporary failure in name resolution", "cannot reach its package index"),
        ("ERROR: ResolutionImpossible", "its own words are above"),
    ],
)
def test_what_pip_says_becomes_advice(install: ModuleType, stderr: str, advice: str) -> None:
    assert advice in install.advice(stderr)


def test_a_python_without_venv_says_what_to_install(
    install: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crippled = tmp_path / "python"
    crippled.write_text("#!/bin/sh\necho 'Error: ensurepip is not available' >&2\nexit 1\n")
    crippled.chmod(0o755)
    monkeypatch.setattr(install, "base_python", lambda: str(crippled))
    with pytest.raises(install.Stop, match="apt-get install python3-venv"):
        install.create_venv(tmp_path / "new")


def test_the_file_can_be_read_by_an_old_python() -> None:
    """ast refuses what the grammar of 3.7 does not know."""
    ast.parse(SCRIPT.read_text(), feature_version=(3, 7))


def test_an_unsupported_python_says_which_ones_are_supported(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "OLDEST", (3, 98))
    monkeypatch.setattr(install, "NEWEST", (3, 99))
    with pytest.raises(SystemExit, match=r"kernelhub needs Python 3\.98 to 3\.99, and this is 3\."):
        install.main([])
