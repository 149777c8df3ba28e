"""The container files by reading: they parse, and what they name exists. Nothing is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

REPO: Final = Path(__file__).resolve().parents[1]
DOCKERFILES: Final = sorted((REPO / "docker").glob("*.Dockerfile"))


def services() -> dict[str, Any]:
    document = yaml.safe_load((REPO / "docker" / "compose.yml").read_text())
    return dict(document["services"])


def test_there_is_one_image_for_the_hub_and_one_for_nodes() -> None:
    assert [path.name for path in DOCKERFILES] == ["runner.Dockerfile", "web.Dockerfile"]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_everything_that_is_copied_exists(dockerfile: Path) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", dockerfile.read_text(), re.MULTILINE)
    missing = [name for line in copied for name in line.split() if not (REPO / name).exists()]
    assert copied
    assert missing == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_images_do_not_run_as_root(dockerfile: Path) -> None:
    assert re.search(r"^USER kernelhub$", dockerfile.read_text(), re.MULTILINE)


def test_compose_builds_from_files_that_exist() -> None:
    builds = [one["build"] for one in services().values() if "build" in one]
    for build in builds:
        assert (REPO / "docker" / build["context"] / build["dockerfile"]).exists()


def test_a_node_gets_no_database_and_no_secret_key() -> None:
    node = services()["node"]
    assert not {"DATABASE_URL", "KERNELHUB_SECRET_KEY"} & set(node["environment"])
    assert not set(node["networks"]) & set(services()["database"]["networks"])


def test_the_web_image_leaves_torch_out() -> None:
    assert "--group" not in (REPO / "docker" / "web.Dockerfile").read_text()
