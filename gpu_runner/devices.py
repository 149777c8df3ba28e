"""Which queue a device serves, found without importing torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from gpu_runner.protocol import CPU_QUEUE

TIMEOUT_S: Final = 20
_UUID: Final = re.compile(r"GPU-[0-9a-fA-F-]+")


class DeviceError(RuntimeError):
    """The driver does not list the device that the agent was asked to serve."""


def queue_of(device: str) -> str:
    """``sm90`` for a GPU of compute capability 9.0, ``cpu-interpret`` for the processor.

    ``auto`` is the first GPU, or the processor without one. DeviceError for a GPU that is absent.
    """
    if device == "cpu":
        return CPU_QUEUE
    capabilities = _capabilities()
    if device == "auto" and not capabilities:
        return CPU_QUEUE
    index = 0 if device == "auto" else int(device.partition(":")[2] or 0)
    if index >= len(capabilities):
        raise DeviceError(f"{device}: the driver lists {len(capabilities)} GPUs")
    return "sm" + capabilities[index].replace(".", "")


def _capabilities() -> list[str]:
    """The compute capabilities of the GPUs that this process may see, in its own numbering."""
    if shutil.which("nvidia-smi") is None:
        return []
    chosen = _UUID.findall(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    only = ["--id=" + ",".join(chosen)] if chosen else []
    try:
        done = subprocess.run(
            [*query, *only], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that does not answer judges no kernel either
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
