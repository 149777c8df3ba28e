"""What nvidia-smi prints."""

from __future__ import annotations

import pytest

from verifier.measure.device_state import parse_state, read_state
from verifier.records import DeviceState


def test_a_line_of_numbers() -> None:
    assert parse_state("1980, 1980, 3201, 34, 118.42") == DeviceState(1980, 1980, 3201, 34, 118.42)


def test_what_the_driver_does_not_say_is_zero() -> None:
    assert parse_state("1980, [N/A], 3201, 34, [Not Supported]") == DeviceState(1980, 0, 3201, 34)


def test_without_the_program_everything_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert read_state("GPU-0") == DeviceState()
