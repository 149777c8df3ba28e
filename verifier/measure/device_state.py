"""What the device was doing while it was timed, as its driver tells it."""

from __future__ import annotations

import subprocess
from typing import Final

from verifier.records import DeviceState

QUERY: Final = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
)


def parse_state(line: str) -> DeviceState:
    """One line of nvidia-smi's CSV without header and units."""
    return DeviceState(*(_number(part) for part in line.split(",")[: len(QUERY)]))


def read_state(uuid: str) -> DeviceState:
    """The state of one device now; all zeros where nvidia-smi is missing or fails."""
    command = ["nvidia-smi", f"--id={uuid}", f"--query-gpu={','.join(QUERY)}"]
    command += ["--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return DeviceState()
    return parse_state(done.stdout.splitlines()[0]) if done.stdout.strip() else DeviceState()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
