"""GPUs as the driver lists them; the processor where it lists none."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kernelhub.launch.devices import local_devices


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place on PATH for a driver's tool; empty at first."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "nvidia-smi"


def answers(driver: Path, script: str) -> None:
    driver.write_text(f"#!/bin/sh\n{script}\n")
    driver.chmod(driver.stat().st_mode | stat.S_IXUSR)


def test_each_gpu_is_a_node_that_sees_itself_as_the_first(driver: Path) -> None:
    answers(driver, "echo '0, GPU-aa'; echo '1, GPU-bb'")
    found = [(one.node.rpartition("-")[2], one.device, one.uuid) for one in local_devices()]
    assert found == [("gpu0", "cuda:0", "GPU-aa"), ("gpu1", "cuda:0", "GPU-bb")]


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found'"])
def test_a_driver_without_a_device_leaves_the_processor(driver: Path, script: str) -> None:
    answers(driver, script)
    assert [one.device for one in local_devices()] == ["cpu"]


def test_no_driver_leaves_the_processor(driver: Path) -> None:
    assert not driver.exists()
    assert [one.device for one in local_devices()] == ["cpu"]
